package driver

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"
)

// Version names this build: module version, revision, Go version, platform.
func Version() string {
	version := "(devel)"
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return fmt.Sprintf("ppc %s%s %s %s/%s", version, revision, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
}
