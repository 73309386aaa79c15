package reader

import "shardtool/reader/store"

// defaultStore is where Open finds shards if nothing else is said.
func defaultStore() store.Store { return &store.Local{} }
