package main

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"ppc/driver"
)

type reportCmd struct {
	settings
	File    string   `arg:"" help:"${file}"`
	HTML    string   `name:"html" placeholder:"FILE" help:"Write one page that needs nothing beside itself, with plots, in place of text."`
	Compare []string `sep:"none" placeholder:"block.key=value" help:"The program under these settings too, side by side; several settings apart by spaces."`
	JSON    bool     `name:"json" help:"One JSON object per line, one for each choice of settings."`
}

func (c *reportCmd) Run(std *streams) error {
	r, err := driver.MakeReport(std.ctx, c.source(c.File, std), driver.ReportOptions{Compare: c.Compare, Out: c.HTML})
	if err != nil {
		return err
	}
	if c.HTML != "" {
		if err := std.print(c.HTML, r.HTML()); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		return std.print("", r.JSON())
	case c.HTML == "":
		return std.print("", r.Text(colours(std.out.w)))
	}
	return nil
}

type viewCmd struct {
	settings
	File  string `arg:"" help:"${file}"`
	HTML  string `name:"html" required:"" placeholder:"FILE" help:"The page."`
	After string `placeholder:"PASS" help:"Stop after this pass."`
}

func (c *viewCmd) Run(std *streams) error {
	page, err := driver.View(std.ctx, c.source(c.File, std), driver.ViewOptions{After: c.After, Out: c.HTML})
	if err != nil {
		return err
	}
	return std.print(c.HTML, page)
}

type diffCmd struct {
	settings
	A    string   `arg:"" help:"${file}"`
	B    string   `arg:"" optional:"" help:"Another; where none is given, the same under other settings."`
	SetA []string `name:"set-a" sep:"none" placeholder:"block.key=value" help:"Override a setting of the first alone."`
	SetB []string `name:"set-b" sep:"none" placeholder:"block.key=value" help:"Override a setting of the second alone."`
	JSON bool     `name:"json" help:"One JSON object per line, one for each difference."`
}

func (c *diffCmd) Validate() error {
	if c.B == "" && len(c.SetA)+len(c.SetB) == 0 {
		return errors.New("two programs, or --set-b block.key=value, which makes a second of the first")
	}
	return nil
}

func (c *diffCmd) Run(std *streams) error {
	a, b := c.source(c.A, std), c.source(cmp.Or(c.B, c.A), std)
	a.Set, b.Set = slices.Concat(c.Set, c.SetA), slices.Concat(c.Set, c.SetB)
	found, err := driver.Differences(std.ctx, a, b)
	if err != nil {
		return err
	}
	if c.JSON {
		for _, d := range found {
			std.json(d)
		}
	} else if err := std.print("", driver.DifferencesText(sideName(c.A, c.SetA), sideName(cmp.Or(c.B, c.A), c.SetB), found)); err != nil {
		return err
	}
	if len(found) > 0 {
		return errDiffers
	}
	return nil
}

// sideName is what one of two programs is called.
func sideName(file string, set []string) string {
	return strings.Join(append([]string{file}, set...), " ")
}
