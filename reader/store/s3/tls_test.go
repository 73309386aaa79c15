package s3_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"shardtool/format"
	"shardtool/reader/store/s3"
)

// A server with a certificate of its own is trusted if AWS_CA_BUNDLE, or the
// profile's ca_bundle, says so, and tried once if not.
func TestCertificates(t *testing.T) {
	noEnvironment(t)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"e"`)
		w.Header().Set("Content-Length", "7")
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	bundle := filepath.Join(t.TempDir(), "bundle.pem")
	if err := os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o666); err != nil {
		t.Fatal(err)
	}
	stat := func() error {
		st := s3.New(&s3.Options{Endpoint: srv.URL, Credentials: testKeys})
		defer st.Close()
		_, err := st.Stat(t.Context(), "s3://bkt/a")
		return err
	}
	check(t, stat(), format.ErrIO, "AWS_CA_BUNDLE")
	t.Setenv("AWS_CA_BUNDLE", bundle)
	if err := stat(); err != nil {
		t.Error(err)
	}
	t.Setenv("AWS_CA_BUNDLE", "")
	if err := os.WriteFile(os.Getenv("AWS_CONFIG_FILE"), []byte("[default]\nca_bundle = "+bundle+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := stat(); err != nil {
		t.Error(err)
	}
}
