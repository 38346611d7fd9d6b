package pjrt

import "unsafe"

// The structs of the C interface, field by field; what is not used keeps its
// place. Pointers of C are uintptr or unsafe.Pointer: the former where the memory
// is the plugin's.

// base begins every struct.
type base struct {
	size uintptr
	ext  uintptr
}

// apiHead begins the table of functions.
type apiHead struct {
	base
	version struct {
		base
		major, minor int32
	}
	functions [1 << 8]uintptr
}

// A function is the place of a function in the table.
type function int

// The functions that are used, and how many the table has before each.
const (
	errorDestroy               function = 0
	errorMessage               function = 1
	errorGetCode               function = 2
	pluginInitialize           function = 3
	eventDestroy               function = 5
	eventAwait                 function = 8
	clientCreate               function = 10
	clientDestroy              function = 11
	clientPlatformName         function = 12
	clientPlatformVersion      function = 14
	clientAddressableDevices   function = 16
	clientCompile              function = 20
	clientBufferFromHost       function = 22
	deviceDescriptionKind      function = 26
	deviceGetDescription       function = 29
	executableDestroy          function = 40
	executableNumOutputs       function = 44
	executableCodeSize         function = 45
	executableCostAnalysis     function = 46
	executableOptimizedProgram function = 48
	executableSerialize        function = 49
	loadedDestroy              function = 50
	loadedGetExecutable        function = 51
	loadedExecute              function = 55
	bufferDestroy              function = 58
	bufferToHost               function = 70
	topologyCreate             function = 82
	topologyDestroy            function = 83
	topologyDescriptions       function = 86
	compile                    function = 89
	executableMemoryStats      function = 96
)

// names are those that messages have for functions.
var names = map[function]string{
	pluginInitialize: "PJRT_Plugin_Initialize", eventAwait: "PJRT_Event_Await", clientCreate: "PJRT_Client_Create",
	clientPlatformName: "PJRT_Client_PlatformName", clientPlatformVersion: "PJRT_Client_PlatformVersion",
	clientAddressableDevices: "PJRT_Client_AddressableDevices", clientCompile: "PJRT_Client_Compile",
	clientBufferFromHost: "PJRT_Client_BufferFromHostBuffer", deviceDescriptionKind: "PJRT_DeviceDescription_Kind",
	deviceGetDescription: "PJRT_Device_GetDescription", executableNumOutputs: "PJRT_Executable_NumOutputs",
	executableCodeSize: "PJRT_Executable_SizeOfGeneratedCodeInBytes", executableCostAnalysis: "PJRT_Executable_GetCostAnalysis",
	executableOptimizedProgram: "PJRT_Executable_OptimizedProgram", executableSerialize: "PJRT_Executable_Serialize",
	loadedGetExecutable: "PJRT_LoadedExecutable_GetExecutable", loadedExecute: "PJRT_LoadedExecutable_Execute",
	bufferToHost: "PJRT_Buffer_ToHostBuffer", topologyCreate: "PJRT_TopologyDescription_Create",
	topologyDescriptions: "PJRT_TopologyDescription_GetDeviceDescriptions", compile: "PJRT_Compile",
	executableMemoryStats: "PJRT_Executable_GetCompiledMemoryStats",
}

// oneArgs is the struct of a function that takes one handle and returns one word.
type oneArgs struct {
	base
	handle uintptr
	out    uintptr
}

// textArgs is the struct of a function that returns text of one handle.
type textArgs struct {
	base
	handle uintptr
	text   uintptr
	len    uintptr
}

// namedValue is a name with a string, a number, numbers or a truth value.
type namedValue struct {
	base
	name    unsafe.Pointer
	nameLen uintptr
	kind    int32
	_       int32
	value   uintptr // or the bits of a number
	len     uintptr
}

// The kinds of a namedValue.
const (
	stringValue = iota
	int64Value
	int64List
	floatValue
	boolValue
)

type clientCreateArgs struct {
	base
	options    unsafe.Pointer
	numOptions uintptr
	get, getTo uintptr
	put, putTo uintptr
	client     uintptr
	try, tryTo uintptr
}

type listArgs struct {
	base
	handle uintptr
	list   uintptr
	len    uintptr
}

type program struct {
	base
	code      unsafe.Pointer
	codeLen   uintptr
	format    unsafe.Pointer
	formatLen uintptr
}

type clientCompileArgs struct {
	base
	client     uintptr
	program    unsafe.Pointer
	options    unsafe.Pointer
	optionsLen uintptr
	executable uintptr
}

type compileArgs struct {
	base
	topology   uintptr
	program    unsafe.Pointer
	options    unsafe.Pointer
	optionsLen uintptr
	client     uintptr
	executable uintptr
}

type bufferFromHostArgs struct {
	base
	client     uintptr
	data       unsafe.Pointer
	elem       int32
	_          int32
	dims       unsafe.Pointer
	numDims    uintptr
	strides    uintptr
	numStrides uintptr
	semantics  int32
	_          int32
	device     uintptr
	memory     uintptr
	layout     uintptr
	done       uintptr
	buffer     uintptr
}

type executeOptions struct {
	base
	send, receive       uintptr
	numSend, numReceive uintptr
	launch              int32
	_                   int32
	kept                unsafe.Pointer
	numKept             uintptr
	context             uintptr
	location            uintptr
	numTasks            uintptr
	tasks, incarnations uintptr
}

type executeArgs struct {
	base
	executable uintptr
	options    unsafe.Pointer
	arguments  unsafe.Pointer // [device][argument]
	devices    uintptr
	args       uintptr
	results    unsafe.Pointer // [device][result]
	complete   unsafe.Pointer // [device]
	device     uintptr
}

type toHostArgs struct {
	base
	buffer uintptr
	layout uintptr
	data   unsafe.Pointer
	len    uintptr
	done   uintptr
}

type memoryStatsArgs struct {
	base
	executable uintptr

	code, arguments, outputs, aliases, temporaries                 int64
	hostCode, hostArguments, hostOutputs, hostAliases, hostScratch int64
	peak                                                           int64
}

type optimizedArgs struct {
	base
	executable uintptr
	program    unsafe.Pointer
}

type serializeArgs struct {
	base
	executable uintptr
	bytes      uintptr
	len        uintptr
	owner      uintptr
	release    uintptr
}

type topologyArgs struct {
	base
	name       unsafe.Pointer
	nameLen    uintptr
	options    unsafe.Pointer
	numOptions uintptr
	topology   uintptr
}

type costArgs struct {
	base
	executable uintptr
	len        uintptr
	values     uintptr
}
