// Package tfexample reads and writes the messages that TFRecord shards mostly
// hold: tf.train.Example and tf.train.SequenceExample, as tensorflow's
// core/example/{example,feature}.proto define them.
//
//	Example          1: Features
//	SequenceExample  1: Features, the context     2: FeatureLists
//	Features         1: map of name to Feature
//	FeatureLists     1: map of name to FeatureList
//	FeatureList      1: Feature, repeated, one for each step
//	Feature          1: BytesList or 2: FloatList or 3: Int64List, or none
//	BytesList, FloatList, Int64List  1: values, repeated; numbers packed or not
//
// On the wire, one feature of an Example:
//
//	0a len  0a len [ 0a len name  12 len [ 1a len [ 0a len varints ] ] ]
//	Features ^       ^ entry       ^ Feature  ^ Int64List
//
// An [Example] or a [SequenceExample] is parsed in place: features are views
// of the record, nothing is copied, and one that is used again allocates
// nothing. Values are what TensorFlow reads: of a name that occurs twice the
// last feature counts, at the place of the first; a message that is split is
// merged; of two kinds in one feature the last counts; unknown fields are
// passed over.
//
// Errors are an *format.Error whose Detail says where in the record the fault
// is, and whose Location knows the field at most: the caller, who knows shard,
// offset and record, adds them with format.ReadError.
package tfexample
