module shardtool/benchmarks/images

go 1.26.0

require (
	github.com/disintegration/imaging v1.6.2
	shardtool v0.0.0
)

require (
	github.com/klauspost/compress v1.20.4 // indirect
	golang.org/x/image v0.48.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace shardtool => ../..
