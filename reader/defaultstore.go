package reader

import (
	"shardtool/reader/store"
	"shardtool/reader/store/stores"
)

// defaultStore is where Open finds shards if nothing else is said.
func defaultStore() store.Store { return stores.Default() }
