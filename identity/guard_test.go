package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// signallers are the functions that signal a process.
var signallers = regexp.MustCompile(`^(` +
	`syscall\.(Kill|TerminateProcess)|` +
	`golang\.org/x/sys/unix\.(Kill|Tgkill|PidfdSendSignal)|` +
	`golang\.org/x/sys/windows\.(TerminateProcess|TerminateJobObject|GenerateConsoleCtrlEvent)|` +
	`os\.FindProcess|\(\*os\.Process\)\.(Kill|Signal)|` +
	`\(\*github\.com/shirou/gopsutil/v4/process\.Process\)\.(Kill|SendSignal|Terminate|Suspend|Resume)(WithContext)?` +
	`)$`)

// numbers are the system calls behind them, killers the programs.
var (
	numbers = regexp.MustCompile(`^SYS_(KILL|KILLPG|TKILL|TGKILL|PIDFD_SEND_SIGNAL|RT_SIGQUEUEINFO|RT_TGSIGQUEUEINFO)$`)
	killers = regexp.MustCompile(`^(kill|pkill|killall|killall5|skill|fuser|taskkill)$`)
)

// ownChild is what a test may do to a child that it started itself: the kernel
// keeps the number of a child until it is waited for.
var ownChild = regexp.MustCompile(`^\(\*os\.Process\)\.(Kill|Signal)$`)

// mayIn are the few places of this package that signal. Two of them take a bare
// number: kill, for systems without a pin, and bareError, which sends signal 0.
var mayIn = map[string][]string{
	"linuxKernel.signal":    {"golang.org/x/sys/unix.PidfdSendSignal"},
	"linuxKernel.ended":     {"golang.org/x/sys/unix.PidfdSendSignal"},
	"linuxKernel.kill":      {"golang.org/x/sys/unix.Kill"},
	"linuxKernel.bareError": {"golang.org/x/sys/unix.Kill"},
}

// baselines are what benchmarks compare hob with: kill(1) on the numbers of a tree
// that they have started themselves.
var baselines = map[string]bool{"real.bareKill": true}

// TestNothingElseSignals holds all of hob, its tests too, to signalling through
// package identity alone.
func TestNothingElseSignals(t *testing.T) {
	pkgs := listPackages(t, "../...")
	if len(pkgs.ours) < 10 {
		t.Fatalf("only %d packages listed: the guard looked at nothing", len(pkgs.ours))
	}
	seen := map[string]bool{}
	for _, p := range pkgs.ours {
		for _, o := range pkgs.offences(t, p, seen) {
			t.Error(o)
		}
	}
	for _, o := range unseen(t, seen) {
		t.Error(o)
	}
}

// TestGuardSees: each offence of the offender is found, and nothing else.
func TestGuardSees(t *testing.T) {
	const file = "testdata/offender/offender.go"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasSuffix(line, "// offence") {
			want = append(want, strconv.Itoa(i+1))
		}
	}
	pkgs := listPackages(t, "./testdata/offender")
	for _, o := range pkgs.offences(t, pkgs.ours[0], map[string]bool{}) {
		got = append(got, strings.Split(o, ":")[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("found in lines %v, want %v", got, want)
	}
}

// listed is a package as `go list` describes it, a test variant included.
type listed struct {
	ImportPath, Dir, Export, ForTest string
	GoFiles                          []string
	ImportMap                        map[string]string
	DepOnly                          bool
	Error                            *struct{ Err string }
}

type packages struct {
	ours   []listed
	export map[string]string
}

func listPackages(t *testing.T, pattern string) packages {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-export", "-deps", "-test", "-json=ImportPath,Dir,Export,ForTest,GoFiles,ImportMap,DepOnly,Error", pattern)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	all := packages{export: map[string]string{}}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p listed
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all.export[p.ImportPath] = p.Export
		if !p.DepOnly && !strings.HasSuffix(p.ImportPath, ".test") {
			all.ours = append(all.ours, p)
		}
	}
	return all
}

// offences type-checks a package and looks at everything that it names. Its
// files are added to seen.
func (all packages) offences(t *testing.T, p listed, seen map[string]bool) (out []string) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file := filepath.Join(p.Dir, name)
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files, seen[file] = append(files, f), true
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: all.importer(fset, p), Error: func(error) {}}
	if _, err := conf.Check(p.ImportPath, fset, files, info); err != nil {
		t.Fatalf("%s: %v", p.ImportPath, err)
	}
	for _, f := range files {
		out = append(out, offencesIn(fset, f, info)...)
	}
	return out
}

func (all packages) importer(fset *token.FileSet, p listed) types.Importer {
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if mapped, ok := p.ImportMap[path]; ok {
			path = mapped
		}
		return os.Open(all.export[path])
	})
}

func offencesIn(fset *token.FileSet, f *ast.File, info *types.Info) (out []string) {
	file := fset.Position(f.Pos()).Filename
	room := filepath.Base(filepath.Dir(file))
	test := strings.HasSuffix(file, "_test.go") || strings.HasSuffix(room, "test")
	where := ""
	ast.Inspect(f, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.FuncDecl:
			where = funcName(n)
		case *ast.Ident:
			what = offence(info.Uses[n], room, where, test)
		case *ast.BasicLit:
			switch {
			case n.Value == `"cgroup.kill"` && !test:
				what = "a file that ends whoever is in a cgroup, looked at or not"
			case n.Value == `"cgroup.freeze"` && !test && room != "identity":
				what = "the file that freezes a cgroup"
			}
		case *ast.CallExpr:
			if what = killer(n, info); test && baselines[where] {
				what = ""
			}
		}
		if what != "" {
			out = append(out, fmt.Sprintf("%s: %s: only package identity signals, through a verified Handle", fset.Position(n.Pos()), what))
		}
		return true
	})
	return out
}

// funcName is "name", or "type.name" for a method.
func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	recv := types.ExprString(d.Recv.List[0].Type)
	return strings.TrimPrefix(recv, "*") + "." + d.Name.Name
}

// offence judges one name that a file uses.
func offence(obj types.Object, room, where string, test bool) string {
	switch obj := obj.(type) {
	case *types.Func:
		name := obj.FullName()
		inside := room == "identity" && (test || slices.Contains(mayIn[where], name))
		allowed := inside || test && ownChild.MatchString(name)
		if signallers.MatchString(name) && !allowed {
			return name
		}
	case *types.Const:
		if allowed := room == "identity" && test; numbers.MatchString(obj.Name()) && !allowed {
			return obj.Name()
		}
	}
	return ""
}

// killer finds exec.Command of a program that signals.
func killer(call *ast.CallExpr, info *types.Info) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	f, ok := info.Uses[sel.Sel].(*types.Func)
	if !ok || f.FullName() != "os/exec.Command" && f.FullName() != "os/exec.CommandContext" {
		return ""
	}
	for _, arg := range call.Args[:min(2, len(call.Args))] {
		lit, ok := arg.(*ast.BasicLit)
		if !ok {
			continue
		}
		if name, err := strconv.Unquote(lit.Value); err == nil && killers.MatchString(path.Base(name)) {
			return "the program " + name
		}
	}
	return ""
}

// unseen looks by names alone at the files that are not built on this system. The
// per-OS code of this package is the only one that may signal.
func unseen(t *testing.T, seen map[string]bool) (out []string) {
	t.Helper()
	names := regexp.MustCompile(`\b(Kill|FindProcess|TerminateProcess|SendSignal|PidfdSendSignal|SYS_KILL)\b`)
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(file string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(file, ".go") || seen[file] {
			return err
		}
		text, err := os.ReadFile(file)
		for i, line := range strings.Split(string(text), "\n") {
			code, _, _ := strings.Cut(line, "//")
			if names.MatchString(code) && !mayUnseen(root, file) {
				out = append(out, fmt.Sprintf("%s:%d: %s", file, i+1, strings.TrimSpace(line)))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// mayUnseen: where the other systems' signals are sent.
func mayUnseen(root, file string) bool {
	rel, _ := filepath.Rel(root, file)
	return rel == filepath.Join("identity", "local_bsd.go") || rel == filepath.Join("identity", "local_windows.go")
}
