package main

import (
	"archive/tar"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// demoArchive is the sample dataset; demo/README.md says where it comes from.
//
//go:embed demo/dataset.tar.zst
var demoArchive []byte

// demoName is the dataset's directory in the archive.
const demoName = "demo.lance"

// unpackDemo writes the sample dataset below dir and returns its path. Times are kept: they are part of what the tree
// shows.
func unpackDemo(dir string) (string, error) {
	z, err := zstd.NewReader(bytes.NewReader(demoArchive))
	if err != nil {
		return "", fmt.Errorf("the embedded dataset: %w", err)
	}
	defer z.Close()
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(dir, demoName), nil
		}
		if err != nil {
			return "", fmt.Errorf("the embedded dataset: %w", err)
		}
		if !filepath.IsLocal(h.Name) {
			return "", fmt.Errorf("the embedded dataset: bad name %q", h.Name)
		}
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return "", err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return "", fmt.Errorf("the embedded dataset: %w", err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return "", err
		}
		if err := os.Chtimes(path, h.ModTime, h.ModTime); err != nil {
			return "", err
		}
	}
}
