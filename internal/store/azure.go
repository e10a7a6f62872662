package store

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	azobject "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

	"github.com/frifs/frifs/fault"
)

// openAzure opens a container of Azure Blob Storage. Account and credentials come from the environment (gocloud's names
// and Lance's): AZURE_STORAGE_CONNECTION_STRING, else AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or
// AZURE_STORAGE_SAS_TOKEN, else Azure's default chain. Options of the URI: storage_account, domain, protocol, cdn,
// localemu, endpoint, anonymous.
func openAzure(ctx context.Context, a *address, opt Options) (*bucket, error) {
	const op = "store.OpenURI"
	service, anonymous, err := azureService(a, opt)
	if err != nil {
		return nil, err
	}
	if err := a.unknown(); err != nil {
		return nil, err
	}
	client, err := azureClient(service, a.bucket, anonymous)
	if err != nil {
		return nil, fault.New(op, a.shown, fault.Denied, "no access to Azure Blob Storage: %w", brief(err))
	}
	b, err := azureblob.OpenBucket(ctx, client, nil)
	if err != nil {
		return nil, fault.New(op, a.shown, fault.Invalid, "%w", brief(err))
	}
	where := client.URL()
	if u, err := url.Parse(where); err == nil {
		where = u.Host + u.Path // a SAS token stands in the query
	}
	return &bucket{blob: b, identity: "az|" + where, driver: azureDriver{client}}, nil
}

// env returns the first variable that is set.
func env(names ...string) string {
	for _, n := range names {
		if v := os.Getenv(n); v != "" {
			return v
		}
	}
	return ""
}

// azureService works out the URL of the account, with a SAS token where one is to be used. An empty URL stands for a
// connection string.
func azureService(a *address, opt Options) (service string, anonymous bool, err error) {
	const op = "store.OpenURI"
	if anonymous, _, err = a.flag("anonymous", "skip_signature", "azure_skip_signature"); err != nil {
		return "", false, err
	}
	anonymous = anonymous || opt.Anonymous
	given, _ := a.take("storage_account", "account_name", "azure_storage_account_name")
	o := azureblob.NewDefaultServiceURLOptions()
	if account := env("AZURE_STORAGE_ACCOUNT_NAME"); o.AccountName == "" {
		o.AccountName = account
	}
	if given != "" {
		o.AccountName = given
	}
	o.SASToken = strings.TrimPrefix(env("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"), "?")
	if anonymous {
		o.SASToken = ""
	}
	if v, ok := a.take("domain"); ok {
		o.StorageDomain = v
	}
	if v, ok := a.take("protocol"); ok {
		o.Protocol = v
	}
	for name, at := range map[string]*bool{"cdn": &o.IsCDN, "localemu": &o.IsLocalEmulator} {
		v, given, err := a.flag(name)
		if err != nil {
			return "", false, err
		}
		if given {
			*at = v
		}
	}
	if endpoint, ok := a.take("endpoint", "azure_endpoint", "azure_storage_endpoint"); ok {
		service = strings.TrimSuffix(endpoint, "/")
		if o.SASToken != "" {
			service += "?" + o.SASToken
		}
		return service, anonymous, nil
	}
	if !anonymous && given == "" && env("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING") != "" {
		return "", false, nil
	}
	if o.AccountName == "" {
		return "", false, fault.New(op, a.shown, fault.Invalid,
			"the storage account is not known: set AZURE_STORAGE_ACCOUNT, or add ?storage_account=NAME to the URI")
	}
	u, err := azureblob.NewServiceURL(o)
	if err != nil {
		return "", false, fault.New(op, a.shown, fault.Invalid, "the options for Azure do not do: %w", brief(err))
	}
	return string(u), anonymous, nil
}

func azureClient(service, name string, anonymous bool) (*container.Client, error) {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, fmt.Errorf("the HTTP transport of this process was replaced")
	}
	transport = transport.Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 2*maxIdle, maxIdle
	base := azcore.ClientOptions{
		Retry:     policy.RetryOptions{MaxRetries: -1}, // the request layer repeats
		Transport: &http.Client{Transport: transport},
	}
	opts := &container.ClientOptions{ClientOptions: base}
	if service == "" {
		return container.NewClientFromConnectionString(env("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING"), name, opts)
	}
	u, err := url.Parse(service)
	if err != nil {
		return nil, bareURLError(err)
	}
	account, _, _ := strings.Cut(u.Host, ".")
	if p := strings.Trim(u.Path, "/"); p != "" {
		account = p // an emulator: http://127.0.0.1:10000/ACCOUNT
	}
	u = u.JoinPath(name)
	key := env("AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY")
	switch {
	case anonymous || u.RawQuery != "":
		return container.NewClientWithNoCredential(u.String(), opts)
	case key != "":
		cred, err := azblob.NewSharedKeyCredential(account, key)
		if err != nil {
			return nil, fmt.Errorf("the key of the account %s cannot be used", account)
		}
		return container.NewClientWithSharedKeyCredential(u.String(), cred, opts)
	}
	cred, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	return container.NewClient(u.String(), cred, opts)
}

// azureDriver knows the types of the Azure SDK behind gocloud's.
type azureDriver struct{ client *container.Client }

// suffix: Azure has no suffix ranges.
func (azureDriver) suffix() bool { return false }

func (azureDriver) prepare(as func(any) bool, _ int64, etag string) {
	var in *azobject.DownloadStreamOptions
	if etag == "" || !as(&in) {
		return
	}
	tag := azcore.ETag(etag)
	in.AccessConditions = &azobject.AccessConditions{ModifiedAccessConditions: &azobject.ModifiedAccessConditions{IfMatch: &tag}}
}

// quoted gives e-tags of listings, which come bare, the form of all others.
func quoted(tag *azcore.ETag) string {
	if tag == nil || *tag == "" {
		return ""
	}
	if t := string(*tag); strings.HasPrefix(t, `"`) || strings.HasPrefix(t, "W/") {
		return t
	}
	return `"` + string(*tag) + `"`
}

func (azureDriver) listed(o *blob.ListObject) string {
	var raw container.BlobItem
	if o.As(&raw) && raw.Properties != nil {
		return quoted(raw.Properties.ETag)
	}
	return ""
}

func (azureDriver) attributes(a *blob.Attributes) string {
	tag := azcore.ETag(a.ETag)
	return quoted(&tag)
}

func (azureDriver) answered(r *blob.Reader) (etag, contentRange string, known bool) {
	var raw azobject.DownloadStreamResponse
	if !r.As(&raw) {
		return "", "", false
	}
	if raw.ContentRange != nil {
		contentRange = *raw.ContentRange
	}
	return quoted(raw.ETag), contentRange, true
}
