package fs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/frifs/frifs/fault"
)

func TestParseKernel(t *testing.T) {
	tests := []struct {
		release             string
		major, minor        int
		before69, before420 bool
	}{
		{"6.18.44-fc-v782", 6, 18, false, false},
		{"6.9.0", 6, 9, false, false},
		{"6.8.12-generic", 6, 8, true, false},
		{"5.15.0-91-generic", 5, 15, true, false},
		{"4.20.1", 4, 20, true, false},
		{"4.19.0+", 4, 19, true, true},
		{"7.0-rc1", 7, 0, false, false},
		{"10.1", 10, 1, false, false},
		{"", 0, 0, false, false},
		{"6", 0, 0, false, false},
		{"linux", 0, 0, false, false},
	}
	for _, tc := range tests {
		k := parseKernel(tc.release)
		if k.major != tc.major || k.minor != tc.minor || k.before(6, 9) != tc.before69 || k.before(4, 20) != tc.before420 {
			t.Errorf("%q: got %+v, before 6.9 %v, before 4.20 %v", tc.release, k, k.before(6, 9), k.before(4, 20))
		}
	}
}

func TestWhoMayShareMounts(t *testing.T) {
	conf := func(text string) string {
		name := filepath.Join(t.TempDir(), "fuse.conf")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	with, without := conf("# FUSE\nmount_max = 10\n  user_allow_other \n"), conf("#user_allow_other\nuser_allow_others\n")
	tests := []struct {
		name string
		opt  Options
		root bool
		conf string
		ok   bool
	}{
		{"nothing asked", Options{}, false, without, true},
		{"root", Options{AllowOther: true}, true, without, true},
		{"permitted", Options{AllowOther: true}, false, with, true},
		{"not permitted", Options{AllowOther: true}, false, without, false},
		{"not permitted for root either", Options{AllowRoot: true}, false, without, false},
		{"no configuration", Options{AllowRoot: true}, false, filepath.Join(t.TempDir(), "none"), false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			err := checkAllowed(tc.opt, tc.root, tc.conf)
			if (err == nil) != tc.ok || (err != nil && (!fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), "user_allow_other"))) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDoctorKnowsContainers(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := container(root); got != "" {
		t.Errorf("an empty machine is in %q", got)
	}
	write("proc/1/cgroup", "0::/init.scope\n")
	if got := container(root); got != "" {
		t.Errorf("a machine with systemd is in %q", got)
	}
	write("proc/1/cgroup", "0::/kubepods.slice/kubepods-burstable.slice/x\n")
	if got := container(root); got != "Kubernetes" {
		t.Errorf("kubepods: %q", got)
	}
	write("run/.containerenv", "")
	if got := container(root); got != "Podman" {
		t.Errorf(".containerenv: %q", got)
	}
	write(".dockerenv", "")
	if got := container(root); got != "Docker" {
		t.Errorf(".dockerenv: %q", got)
	}
	for text, want := range map[string]bool{
		"Name:\tx\nCapEff:\t000001ffffffffff\n": true,
		"CapEff:\t00000000a80425fb\n":           false,
		"CapEff:\tnonsense\n":                   true,
		"":                                      true,
	} {
		write("proc/self/status", text)
		if got := mayMount(root); got != want {
			t.Errorf("%q: may mount: %v, want %v", text, got, want)
		}
	}
}
