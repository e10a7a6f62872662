// Slowmount mounts a dataset through a store that answers late and counts what it is asked for. It is for the tests of
// integration/ only: the product has no way to slow a store down.
//
//	slowmount -delay 50ms -op-timeout 60s -report FILE DATASET MOUNTPOINT
//
// On SIGUSR1 it writes the calls since the last report to FILE, as a JSON object from "Method name" to the number of
// calls, and starts to count anew. SIGTERM unmounts.
package main
