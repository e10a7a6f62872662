// Package archtest holds tests of the shape of the project, not of what it does: which package may import which
// (docs/DESIGN.md, "Layers"), that every package says what it is for, that files stay small, and that the sections of
// docs/ which comments cite exist. It reads source files only; it needs neither a network nor the go command.
package archtest
