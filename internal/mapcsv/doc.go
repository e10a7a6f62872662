// Package mapcsv renders the mappings of a history as text and as Arrow files that are never materialised.
package mapcsv
