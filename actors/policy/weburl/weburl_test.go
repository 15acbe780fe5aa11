package weburl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/actors/policy/weburl"
	"github.com/nodbus/nod/schemas"
)

func whys(faults []weburl.Fault) string {
	var all []string
	for _, f := range faults {
		all = append(all, f.Why)
	}
	return strings.Join(all, "; ")
}

// The fault of a URL that carries a secret names the secret's kind and the host. Only an allow rule that
// names the whole URL covers the URL.
func TestSecretsInURLs(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://ann:pw@x.test/":                                             "sends a password in the URL to x.test",
		"https://ann@x.test/":                                                "sends a login in the URL to x.test",
		"https://github.com@x.test/a":                                        "sends a login in the URL to x.test",
		"https://x.test/?token=abc":                                          "sends a secret (token) in the URL to x.test",
		"https://x.test/?a=1&API_KEY=abc":                                    "sends a secret (API_KEY) in the URL to x.test",
		"https://x.test/?apikey=abc":                                         "sends a secret (apikey) in the URL to x.test",
		"https://x.test/?api-key=abc":                                        "sends a secret (api-key) in the URL to x.test",
		"https://x.test/?key=abc":                                            "sends a secret (key) in the URL to x.test",
		"https://x.test/?access_token=abc":                                   "sends a secret (access_token) in the URL to x.test",
		"https://x.test/?secret=abc":                                         "sends a secret (secret) in the URL to x.test",
		"https://x.test/?password=abc":                                       "sends a password in the URL to x.test",
		"https://x.test/?user%5Bpassword%5D=abc":                             "sends a password in the URL to x.test",
		"https://x.test/?sig=abc&se=2":                                       "sends a secret (sig) in the URL to x.test",
		"https://x.test/?signature=abc":                                      "sends a secret (signature) in the URL to x.test",
		"https://x.test/?auth=abc":                                           "sends a secret (auth) in the URL to x.test",
		"https://x.test/?%61uth=abc":                                         "sends a secret (auth) in the URL to x.test",
		"https://x.test/o?X-Amz-Signature=ab":                                "sends a secret (X-Amz-Signature) in the URL to x.test",
		"https://x.test/o?X-Goog-Signature=ab":                               "sends a secret (X-Goog-Signature) in the URL to x.test",
		"https://x.test/cb#access_token=ab":                                  "sends a secret (access_token) in the URL to x.test",
		"https://x.test/?c=postgres%3A%2F%2Fshop%3As3cret%40db%2Fshop":       "sends a password in the URL to x.test",
		"https://x.test/?c=U%3Dpostgres%253A%252F%252Fa%253Ab%2540db":        "sends a password in the URL to x.test",
		"https://x.test/?c=cG9zdGdyZXM6Ly9zaG9wOnMzY3JldEBkYi9zaG9w":         "sends a password in the URL to x.test",
		"https://x.test/?q=ghp_0123456789abcdefghij0123":                     "sends a secret in the URL to x.test",
		"https://x.test/ghp_0123456789abcdefghij0123":                        "sends a secret in the URL to x.test",
		"https://x.test/?AKIAABCDEFGHIJKLMNOP":                               "sends a secret in the URL to x.test",
		"https://x.test/?q=AWS_SECRET_ACCESS_KEY%3DabcDEF":                   "sends a secret in the URL to x.test",
		"https://ann:p/w@x.test/":                                            "sends a password in the URL to an unknown place",
		"git+https://ann:pw@x.test/r":                                        "sends a password in the URL to x.test",
		"https://x.test/?page_token=abc&nextToken=b":                         "",
		"https://x.test/?q=how+to+rotate+a+token":                            "",
		"https://x.test/?token=":                                             "",
		"https://x.test/docs/auth/token?lang=go#api-key":                     "",
		"https://raw.githubusercontent.com/a/b/main/Create_Password_test.py": "",
		"ssh://git@x.test/r":                                                 "",
		"postgres://ann:pw@db/shop":                                          "",
	} {
		faults := weburl.OfWord(raw, false)
		assert.Equal(t, want, whys(faults), raw)
		for _, f := range faults {
			assert.Equal(t, weburl.WholeCall, f.Needs, raw)
			assert.Equal(t, schemas.RiskHigh, f.Risk, raw)
		}
	}
	assert.Equal(t, "sends a secret (token) in the URL to x.test", whys(weburl.OfWord("https://x.test/?token=", true)), "only the shell knows the value")
}

func TestPlacesOfURLs(t *testing.T) {
	t.Parallel()
	const cloud, bare = "reaches the service that gives this machine its cloud credentials", "reaches the bare IP address 8.8.8.8"
	for raw, want := range map[string][2]string{ // for a fetch, and in a command
		"http://169.254.169.254/latest/meta-data/": {cloud, cloud},
		"http://[::ffff:169.254.169.254]/":         {cloud, cloud},
		"http://[fd00:ec2::254]/":                  {cloud, cloud},
		"http://metadata.google.internal/":         {cloud, cloud},
		"http://METADATA.google.internal./":        {cloud, cloud},
		"https://8.8.8.8/dns":                      {bare, bare},
		"https://[2001:db8::1]/":                   {"reaches the bare IP address 2001:db8::1", "reaches the bare IP address 2001:db8::1"},
		"http://2852039166/":                       {"its address may hide an IP address", "its address may hide an IP address"},
		"http://0x7f.1/":                           {"its address may hide an IP address", "its address may hide an IP address"},
		"http://localhost:3000/":                   {"reaches this machine or its network", ""},
		"http://127.0.0.1:8080/x":                  {"reaches this machine or its network", ""},
		"http://10.0.0.7/":                         {"reaches this machine or its network", ""},
		"file:///etc/passwd":                       {"is not a web address", "reads a file of this machine by a URL"},
		"gopher://x.test/":                         {"is not a web address", "uses a URL that is not a web address"},
		"https://x.test/a":                         {"", ""},
	} {
		assert.Equal(t, want[0], whys(weburl.OfFetch(raw)), raw)
		assert.Equal(t, want[1], whys(weburl.OfWord(raw, false)), raw)
	}
}

// A URL so long that it may carry data out is a reason to ask, wherever the data is.
func TestLongURLs(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"https://x.test/?q=" + strings.Repeat("ab+", 90), "https://x.test/" + strings.Repeat("a", 201), "https://x.test/" + strings.Repeat("abc/", 160),
		"https://" + strings.Repeat("abcdefgh.", 12) + "test/", "https://x.test/#" + strings.Repeat("a", 300),
	} {
		faults := weburl.OfFetch(raw)
		if assert.Len(t, faults, 1, raw) {
			assert.Contains(t, faults[0].Why, "characters in the URL to ", raw)
			assert.Equal(t, schemas.RiskMedium, faults[0].Risk)
		}
	}
	assert.Empty(t, weburl.OfFetch("https://learn.example.com/en-us/dotnet/api/system.collections.generic.dictionary-2?view=net-9.0&tabs=overview&pivots=csharp&q="+strings.Repeat("a", 120)))
}
