package config

// StoreInMemory is the path of a store without a file.
const StoreInMemory = "memory"

// Store is the embedded store: the audit log, what an operator has ordered, and the history of seven days. Requests never wait for it, and go on without it.
type Store struct {
	// File of the store, one SQLite database that is made where there is none and that its owner alone reads; beside it are -wal while the router runs. One process has it at a time. Without a path it is ./hourthree.db, and where that cannot be written the router says so and keeps everything in memory; with one, the router does not start without it. memory keeps nothing on disk. A router without a configuration file does the same. A change takes effect with a restart.
	Path string `yaml:"path"`
}
