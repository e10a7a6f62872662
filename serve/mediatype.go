package serve

import (
	"path"
	"strings"
)

// mediaType is the Content-Type of a file by its name. Only what frifs itself writes has one: the names of stored files
// come from the dataset, and must not have a browser run anything.
func mediaType(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".json":
		return "application/json"
	case ".jsonl":
		return "application/jsonl"
	case ".csv":
		return "text/csv; charset=utf-8; header=present"
	case ".arrow":
		return "application/vnd.apache.arrow.file"
	case ".svg":
		return "image/svg+xml"
	case ".dot":
		return "text/vnd.graphviz; charset=utf-8"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	switch name {
	case "metrics":
		return "text/plain; version=0.0.4; charset=utf-8"
	case "refresh":
		return "application/json"
	}
	return "application/octet-stream"
}
