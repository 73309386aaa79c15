package main

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// TestRealServer runs the verbs against an S3 server that is not ours, which
// .ci/servers.sh starts.
func TestRealServer(t *testing.T) {
	endpoint := os.Getenv("SHARDTOOL_S3_ENDPOINT")
	switch {
	case endpoint != "":
	case os.Getenv("SHARDTOOL_NEED_SERVERS") != "":
		t.Fatal("SHARDTOOL_S3_ENDPOINT is not set")
	default:
		t.Skip("SHARDTOOL_S3_ENDPOINT is not set; .ci/servers.sh COMMAND starts a server and sets it")
	}
	t.Setenv("AWS_ENDPOINT_URL", endpoint)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	bucket := "command-" + strings.ToLower(rand.Text()[:16])
	client := s3.New(s3.Options{BaseEndpoint: &endpoint, UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), "")})
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
		t.Fatal(err)
	}
	photos := fixturesFolder(t) + "/photos/photos-00000"
	for _, tt := range []struct {
		args string
		code int
		says []string
	}{
		{"convert --shards 3 PHOTOS0.tar PHOTOS1.tfrecord s3://BUCKET/train/%06d.tar --preset imagenet --drop image/changes", 0, []string{"36 samples in 3 shards"}},
		{"convert PHOTOS0.tar s3://BUCKET/train/000000.tar", 2, []string{"exists already"}},
		{"verify s3://BUCKET/train/{000000..000002}.tar", 0, []string{"3 of 3 shards are sound"}},
		{"index s3://BUCKET/train/*.tar", 0, []string{"000002.tar.idx: wds, 12 samples"}},
		{"index --check s3://BUCKET/train/*.tar", 0, []string{"000002.tar.idx: ok"}},
		{"cat --limit 1 s3://BUCKET/train/*.tar", 0, []string{"s3://BUCKET/train/000000.tar\t0\t0\t"}},
		{"stats s3://BUCKET/train/*.tar", 0, []string{"36 images"}},
		{"plan --shuffle global --batch 12 s3://BUCKET/train/*.tar", 0, []string{"samples   36 of 3 shards", "3 an epoch; a batch is 12 samples", "36 requests"}},
		{"verify s3://BUCKET/none.tar", 3, []string{"not-found"}},
		{"verify s3://BUCKET-none/x.tar", 3, []string{"not-found", "no bucket"}},
		{"doctor --bytes 10MB --connections 2 s3://BUCKET/train/", 0, []string{
			"ok    connection", "ok    credentials  from EnvConfigCredentials", "3 shards", "each shard has an index", "ok    ranges", "ok    if-match", "ok    bandwidth    2 connections", "ok    advice"}},
		{"doctor s3://BUCKET/none/", 3, []string{"ok    connection", "FAIL  access"}},
	} {
		fill := strings.NewReplacer("BUCKET", bucket, "PHOTOS", photos)
		code, out, stderr := runCommand(t, "", strings.Fields(fill.Replace(tt.args))...)
		bad := code != tt.code
		for _, text := range tt.says {
			bad = bad || !strings.Contains(out+stderr, fill.Replace(text))
		}
		if bad {
			t.Errorf("%s: exit %d, want %d and %q\n%s%s", tt.args, code, tt.code, tt.says, out, stderr)
		}
	}
}
