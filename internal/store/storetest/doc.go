// Package storetest holds stores for tests: Counting wraps a store, counts the calls, delays them, and makes chosen ones
// fail; Mem is a store in memory whose objects can be changed under a reader. It is no part of the product and keeps no
// promise to anyone but the project's tests.
package storetest
