package store

import (
	"net/url"
	"slices"
	"strings"

	"github.com/frifs/frifs/fault"
)

// cloud is a family of object stores that speak one protocol.
type cloud uint8

const (
	noCloud cloud = iota // mem:// and file://
	amazon               // s3:// and what is compatible with it
	google               // gs://
	azure                // az://, azblob://, abfs://
)

// address is a URI with a scheme, understood.
type address struct {
	scheme string // as gocloud knows it: s3, gs, azblob, file, mem
	cloud  cloud
	bucket string // or container
	prefix string // below the bucket, no slash at either end
	shown  string // the URI for messages and for comparison: no credentials, no query
	params url.Values
	// unlisted is set for s3+ddb://: the commit table is not asked, so that the newest version may be missing.
	unlisted bool
}

// schemes maps what users, gocloud and Lance write to the scheme that is meant and to the one that is shown.
var schemes = map[string]struct {
	scheme, shown string
	cloud         cloud
}{
	"s3":                {"s3", "s3", amazon},
	"s3+ddb":            {"s3", "s3", amazon},
	"s3a":               {"s3", "s3", amazon},
	"gs":                {"gs", "gs", google},
	"gcs":               {"gs", "gs", google},
	"az":                {"azblob", "az", azure},
	"azblob":            {"azblob", "az", azure},
	"azure":             {"azblob", "az", azure},
	"abfs":              {"azblob", "abfss", azure},
	"abfss":             {"azblob", "abfss", azure},
	"file":              {"file", "file", noCloud},
	"file-object-store": {"file", "file", noCloud},
	"file+uring":        {"file", "file", noCloud},
	"mem":               {"mem", "mem", noCloud},
	"memory":            {"mem", "mem", noCloud},
}

// secretParams are names that Lance gives to credentials. They have no place in a URI, which ends up in shell
// histories, process lists and logs.
var secretParams = []string{
	"access_key_id", "secret_access_key", "session_token", "token", "account_key", "access_key", "master_key", "sas_token", "sas_key", "sig",
	"connection_string", "service_account_key", "client_secret", "bearer_token", "credential",
}

// parseAddress understands a URI with a scheme. Errors: fault.Invalid, and fault.Unsupported for other schemes; they
// name options but never show the values.
func parseAddress(u *url.URL) (*address, error) {
	const op = "store.OpenURI"
	s, ok := schemes[strings.ToLower(u.Scheme)]
	if !ok {
		return nil, fault.New(op, WithoutCredentials(u), fault.Unsupported,
			"this build of frifs has no store for the scheme %q: write s3://, gs://, az://, abfss://, file:// or a plain path", u.Scheme)
	}
	a := &address{scheme: s.scheme, cloud: s.cloud, bucket: u.Host, prefix: strings.Trim(u.Path, "/"), shown: WithoutCredentials(u), params: url.Values{}}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fault.New(op, a.shown, fault.Invalid, "the options behind the ? cannot be parsed")
	}
	for name, values := range query {
		if secret(name) {
			return nil, fault.New(op, a.shown, fault.Invalid,
				"the option %q holds a credential, which does not belong into a URI: use the environment or the cloud's own configuration files", name)
		}
		if len(values) != 1 {
			return nil, fault.New(op, a.shown, fault.Invalid, "the option %q is given %d times", name, len(values))
		}
		a.params.Set(strings.ToLower(name), values[0])
	}
	if _, ddb := u.Query()["ddbTableName"]; ddb || strings.EqualFold(u.Scheme, "s3+ddb") {
		a.unlisted = true
		a.params.Del("ddbtablename")
	}
	switch s.scheme {
	case "file":
		if u.Host != "" && u.Host != "localhost" && u.Host != "." {
			return nil, fault.New(op, a.shown, fault.Invalid, "a file URI has no host: write file:///path")
		}
		return a, nil
	case "mem":
		a.prefix, a.bucket = strings.Trim(u.Host+u.Path, "/"), ""
	case "azblob":
		if strings.HasPrefix(strings.ToLower(u.Scheme), "abfs") {
			if err := a.dataLake(u); err != nil {
				return nil, err
			}
		}
	}
	if s.scheme != "mem" && a.bucket == "" {
		return nil, fault.New(op, a.shown, fault.Invalid, "the URI names no bucket: write %s://BUCKET/PATH", s.shown)
	}
	if s.cloud != noCloud && !strings.HasPrefix(strings.ToLower(u.Scheme), "abfs") && u.User != nil {
		return nil, fault.New(op, a.shown, fault.Invalid, "the URI holds a user name or a password: credentials do not belong into a URI")
	}
	if err := CheckName(a.prefix); err != nil {
		return nil, fault.Wrap(op, a.shown, err)
	}
	return a, nil
}

// dataLake understands abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH; the blob interface of the same account is
// what is used.
func (a *address) dataLake(u *url.URL) error {
	container := u.User.Username()
	if _, password := u.User.Password(); password || container == "" {
		return fault.New("store.OpenURI", a.shown, fault.Invalid, "write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH")
	}
	account, domain, ok := strings.Cut(u.Host, ".dfs.")
	if !ok {
		return fault.New("store.OpenURI", a.shown, fault.Invalid, "the host of an abfss URI is ACCOUNT.dfs.core.windows.net, this one is %q", u.Host)
	}
	a.bucket = container
	a.params.Set("storage_account", account)
	a.params.Set("domain", "blob."+domain)
	return nil
}

func secret(param string) bool {
	p := strings.ToLower(param)
	for _, prefix := range []string{"aws_", "google_", "azure_storage_", "azure_"} {
		p = strings.TrimPrefix(p, prefix)
	}
	return slices.Contains(secretParams, p) || strings.HasPrefix(p, "x-amz-") || strings.HasPrefix(p, "x-goog-")
}

// take removes the first of the options that is there and returns its value.
func (a *address) take(names ...string) (string, bool) {
	for _, n := range names {
		if v := a.params.Get(n); v != "" {
			a.params.Del(n)
			return v, true
		}
	}
	return "", false
}

// flag takes an option whose value is true or false.
func (a *address) flag(names ...string) (value, given bool, err error) {
	v, ok := a.take(names...)
	switch strings.ToLower(v) {
	case "":
		return false, false, nil
	case "true", "1", "yes", "on":
		return true, ok, nil
	case "false", "0", "no", "off":
		return false, ok, nil
	}
	return false, ok, fault.New("store.OpenURI", a.shown, fault.Invalid, "the option %q is neither true nor false", names[0])
}

// unknown complains about options that nobody took.
func (a *address) unknown() error {
	var left []string
	for n := range a.params {
		left = append(left, n)
	}
	if len(left) == 0 {
		return nil
	}
	slices.Sort(left)
	return fault.New("store.OpenURI", a.shown, fault.Invalid, "unknown options of a %s URI: %s", a.scheme, strings.Join(left, ", "))
}

// WithoutCredentials renders u without user, password, query and fragment, and names the scheme in one way
// (s3+ddb://b becomes s3://b), so that URIs of one place are equal. The container of an abfss:// URI, which stands where
// the user would, stays.
func WithoutCredentials(u *url.URL) string {
	shown := url.URL{Scheme: strings.ToLower(u.Scheme), Host: u.Host, Path: u.Path}
	if s, ok := schemes[shown.Scheme]; ok {
		shown.Scheme = s.shown
	}
	if shown.Scheme == "abfss" && u.User != nil {
		shown.User = url.User(u.User.Username())
	}
	return strings.TrimSuffix(shown.String(), "/")
}

// WithOptionsOf returns uri with the options (the query) of root, if uri has none of its own and both name the same kind
// of store: the bases of a dataset are recorded without the endpoint and the region that its root was opened with.
func WithOptionsOf(root, uri string) string {
	r, err := parseURI(root)
	if err != nil || r.RawQuery == "" || !IsURI(root) || !IsURI(uri) {
		return uri
	}
	u, err := parseURI(uri)
	if err != nil || u.RawQuery != "" || schemes[strings.ToLower(u.Scheme)].scheme != schemes[strings.ToLower(r.Scheme)].scheme {
		return uri
	}
	q := r.Query()
	q.Del("ddbTableName")
	u.RawQuery = q.Encode()
	return u.String()
}
