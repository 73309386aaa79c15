package format

import "testing"

func TestRedact(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"", ""},
		{"train-000.tar", "train-000.tar"},
		{"s3://bucket/key?with=mark", "s3://bucket/key?with=mark"},
		{"s3://bucket/a@b/key", "s3://bucket/a@b/key"},
		{"s3://AKIA:secret@bucket/a@b", "s3://bucket/a@b"},
		{"ftp://me:secret@host", "ftp://host"},
		{"https://host/a.tar", "https://host/a.tar"},
		{"https://me:secret@host/a.tar", "https://host/a.tar"},
		{"HTTPS://h/a.tar?X-Amz-Signature=abc&X-Amz-Date=1", "HTTPS://h/a.tar?X-Amz-Signature=REDACTED&X-Amz-Date=REDACTED"},
		{"http://h/a.tar?token", "http://h/a.tar?REDACTED"},
		{"http://h?sig=a;b=c#part", "http://h?sig=REDACTED&b=REDACTED"},
		{"http://a@b@h/x", "http://h/x"},
	} {
		if got := Redact(tt.name); got != tt.want {
			t.Errorf("Redact(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
	at := Location{Shard: "https://u:p@h/a.tar?sig=x", Offset: 512, Record: Unknown}
	if got, want := at.String(), "https://h/a.tar?sig=REDACTED @ 512"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
