package format

import "strings"

// Redact returns a name for errors, logs and output: of an http or https
// address, user and password are left out and every value of the query is
// replaced, for any of them may be a signature or a token. Of other names with
// a scheme user and password are left out; the rest is returned as it is.
func Redact(name string) string {
	colon := strings.Index(name, "://")
	if colon < 0 {
		return name
	}
	scheme, rest := name[:colon+3], name[colon+3:]
	if !strings.EqualFold(name[:colon], "http") && !strings.EqualFold(name[:colon], "https") {
		// Such as s3://KEY:SECRET@bucket/key, which some tools take.
		authority, _, _ := strings.Cut(rest, "/")
		return scheme + rest[strings.LastIndexByte(authority, '@')+1:]
	}
	rest, _, _ = strings.Cut(rest, "#")
	address, query, asked := strings.Cut(rest, "?")
	host, path, slash := strings.Cut(address, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if slash {
		host += "/"
	}
	if asked {
		query = "?" + redactQuery(query)
	}
	return scheme + host + path + query
}

func redactQuery(query string) string {
	pairs := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
	for i, pair := range pairs {
		pairs[i] = "REDACTED" // a bare word may be the token itself
		if key, _, ok := strings.Cut(pair, "="); ok {
			pairs[i] = key + "=REDACTED"
		}
	}
	return strings.Join(pairs, "&")
}
