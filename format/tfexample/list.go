package tfexample

import "shardtool/format"

// ListOf returns a new list of features, one for each step.
func ListOf(steps ...Feature) Feature {
	var data []byte
	for _, s := range steps {
		data = appendTag(data, 1, s.size())
		data = s.append(data)
	}
	return Feature{format.FeatureList, len(steps), data}
}
