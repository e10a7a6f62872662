// Package proxy is an HTTP proxy for tests that stands between a client and one server and does to chosen answers what
// networks do: delays them, replaces them by an error, resets the connection, cuts the body short, halts in the middle of
// it. It keeps no promise to anyone but the project's tests.
package proxy
