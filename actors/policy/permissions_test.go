package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// asWritten is a Resolver that returns the path unchanged, for paths without symbolic links.
func asWritten(p string) (string, error) { return p, nil }

func parse(t testing.TB, tags ...string) []policy.Permission {
	t.Helper()
	perms := make([]policy.Permission, len(tags))
	for i, tag := range tags {
		p, err := policy.ParsePermission(tag)
		require.NoError(t, err, tag)
		perms[i] = p
	}
	return perms
}

func tags(perms []policy.Permission) []string {
	out := []string{}
	for _, p := range perms {
		out = append(out, p.String())
	}
	return out
}

func TestPermissionTags(t *testing.T) {
	for tag, want := range map[string]string{
		"@network":                            "@network",
		"@read:/":                             "@read:/",
		"@read:/src/":                         "@read:/src",
		"@write://src/./a b":                  "@write:/src/a b",
		"@read:/a:b":                          "@read:/a:b",
		"@read:/..a/...":                      "@read:/..a/...",
		"@read:/" + strings.Repeat("ä", 4095): "@read:/" + strings.Repeat("ä", 4095),
		"@write:/" + strings.Repeat("x/", 2047) + "y": "@write:/" + strings.Repeat("x/", 2047) + "y",
		"@read:/\u202egnp":                            "@read:/\u202egnp", // the tag keeps the invisible character; only the display escapes it
	} {
		p, err := policy.ParsePermission(tag)
		require.NoError(t, err, tag)
		assert.Equal(t, want, p.String())
	}
	const form = "Permission must be @read:<path>, @write:<path> or @network."
	for tag, want := range map[string]string{
		"@read:":                              "Read permission requires a path.",
		"@read: \t":                           "Read permission requires a path.",
		"@write":                              "Write permission requires a path.",
		"@write:":                             "Write permission requires a path.",
		"@read:src":                           "Path must be absolute.",
		"@read: /src":                         "Path must be absolute.",
		"@read:~":                             "Path must be absolute.",
		"@write:~/src":                        "Path must be absolute.",
		"@read:./src":                         "Path must be absolute.",
		"@read:/a\x00b":                       "Path must not contain control characters.",
		"@read:/a\nb":                         "Path must not contain control characters.",
		"@read:/a\x7f":                        "Path must not contain control characters.",
		"@read:/a\u0085b":                     "Path must not contain control characters.",
		"@read:/a\xff":                        "Path must not contain control characters.",
		"@read:/a/../b":                       `Path must not contain "..".`,
		"@read:/..":                           `Path must not contain "..".`,
		"@read:/" + strings.Repeat("x", 4096): "Path must have at most 4096 characters.",
		"@network:/x":                         "Network permission must be @network or @network:<host>:<port>, in lower case.",
		"@network ":                           form,
		"@exec:/x":                            form,
		"read:/x":                             form,
		"@READ:/x":                            form,
		"":                                    form,
	} {
		p, err := policy.ParsePermission(tag)
		require.EqualError(t, err, want, "%q", tag)
		assert.ErrorIs(t, err, &schemas.Error{Code: schemas.CodeValidation})
		assert.Zero(t, p)
	}
}

func TestPermissionsCoverWholePathSegments(t *testing.T) {
	set := schemas.SessionPermissions{WorkingDir: "/home", ReadDirs: []string{"/src", "/etc/hosts"}, WriteDirs: []string{"/out"}}
	everything := schemas.SessionPermissions{WriteDirs: []string{"/"}, Network: true}
	for _, c := range []struct {
		set  *schemas.SessionPermissions
		tag  string
		want bool
	}{
		{&set, "@read:/src", true},
		{&set, "@read:/src/a/b", true},
		{&set, "@read:/srcfoo", false}, // /srcfoo is not in the directory /src
		{&set, "@read:/sr", false},
		{&set, "@read:/", false},
		{&set, "@write:/src/a", false},
		{&set, "@read:/etc/hosts", true},
		{&set, "@read:/etc", false},
		{&set, "@write:/out/x", true},
		{&set, "@read:/out/x", true}, // a directory that may be written may also be read
		{&set, "@write:/outer", false},
		{&set, "@write:/home/x", true},
		{&set, "@read:/home", true},
		{&set, "@read:/homeless", false},
		{&set, "@network", false},
		{&everything, "@read:/x", true},
		{&everything, "@network", true},
		{&schemas.SessionPermissions{}, "@read:/", false}, // the set's working directory is "", which covers nothing
		{&schemas.SessionPermissions{ReadDirs: []string{"", "src", "."}}, "@read:/src", false},
		{nil, "@read:/src", false},
		{nil, "@network", false},
	} {
		assert.Equal(t, c.want, policy.Covers(c.set, parse(t, c.tag)[0], asWritten), c.tag)
	}
	assert.False(t, policy.Covers(&everything, policy.Permission{}, asWritten), "no permission is none that is held")
	assert.False(t, policy.Covers(&everything, policy.Permission{Access: "own", Path: "/x"}, asWritten))
	assert.False(t, policy.Covers(&everything, policy.Permission{Access: policy.AccessRead}, asWritten), "a path that is none")
	lost := func(string) (string, error) { return "/src", errors.New("the disk is gone") }
	assert.False(t, policy.Covers(&everything, parse(t, "@read:/src")[0], lost), "what cannot be resolved is not held")
}

func TestMissingResolvesLinksAndSkipsHeldPermissions(t *testing.T) {
	set := schemas.SessionPermissions{ReadDirs: []string{"/src"}}
	links := func(p string) (string, error) {
		return map[string]string{"/src/link": "/etc/passwd"}[p] + strings.TrimPrefix(p, "/src/link"), nil
	}
	missing, err := policy.Missing(&set, parse(t, "@read:/src/a", "@network", "@read:/src/link", "@write:/src/a", "@network"), links)
	require.NoError(t, err)
	assert.Equal(t, []string{"@network", "@read:/etc/passwd", "@write:/src/a"}, tags(missing))

	held := policy.Apply(set, missing...)
	missing, err = policy.Missing(&held, parse(t, "@network", "@read:/src/link", "@write:/src/a"), links)
	require.NoError(t, err)
	assert.Empty(t, missing, "what was granted is held")

	newline := func(string) (string, error) { return "/a\nb", nil }
	_, err = policy.Missing(&set, parse(t, "@read:/a"), newline)
	assert.EqualError(t, err, "Path must not contain control characters.", "nobody can be shown such a target")
}

func TestApplyOnlyAddsPermissions(t *testing.T) {
	before := schemas.SessionPermissions{WorkingDir: "/home", ReadDirs: []string{"/a"}}
	after := policy.Apply(before, parse(t, "@write:/out", "@read:/a/b", "@network")...)
	assert.Equal(t, schemas.SessionPermissions{WorkingDir: "/home", ReadDirs: []string{"/a", "/out"}, WriteDirs: []string{"/out"}, Network: true}, after)
	assert.Equal(t, schemas.SessionPermissions{WorkingDir: "/home", ReadDirs: []string{"/a"}}, before)
	assert.Equal(t, after, policy.Apply(after, parse(t, "@write:/out", "@read:/a/b", "@network")...))

	// An added permission does not narrow the set's access.
	assert.True(t, policy.Covers(&after, parse(t, "@read:/home/x")[0], asWritten))
	assert.True(t, policy.Covers(&after, parse(t, "@read:/a/x")[0], asWritten))
	odd := []policy.Permission{{Access: policy.AccessRead}, {Access: policy.AccessWrite, Path: "../x"}, {Access: "own", Path: "/x"}}
	assert.Equal(t, after, policy.Apply(after, odd...), "what is no permission adds nothing")

	// Two sets share this slice. Apply must not write to the slice's spare capacity.
	shared := schemas.SessionPermissions{ReadDirs: append(make([]string, 0, 4), "/a")}
	one, two := policy.Apply(shared, parse(t, "@read:/one")...), policy.Apply(shared, parse(t, "@read:/two")...)
	assert.Equal(t, []string{"/a", "/one"}, one.ReadDirs)
	assert.Equal(t, []string{"/a", "/two"}, two.ReadDirs)
}

func TestExecScope(t *testing.T) {
	set := schemas.SessionPermissions{WorkingDir: "/home", ReadDirs: []string{"/src"}, WriteDirs: []string{"/out"}, Network: true}
	for name, c := range map[string]struct {
		tags []string
		want schemas.SessionPermissions
		err  string
	}{
		"everything is cleared": {nil, schemas.SessionPermissions{WorkingDir: "/home"}, ""},
		"the named go along": {
			[]string{"@read:/src/a", "@write:/out", "@network"},
			schemas.SessionPermissions{WorkingDir: "/home", ReadDirs: []string{"/src/a", "/out"}, WriteDirs: []string{"/out"}, Network: true}, "",
		},
		"the working directory needs no naming": {[]string{"@write:/home/b"}, schemas.SessionPermissions{WorkingDir: "/home", ReadDirs: []string{"/home/b"}, WriteDirs: []string{"/home/b"}}, ""},
		"what is not held":                      {[]string{"@network", "@write:/src"}, schemas.SessionPermissions{}, "Cannot attach permission '@write:/src' - you don't have it."},
		"a neighbour of what is held":           {[]string{"@read:/srcfoo"}, schemas.SessionPermissions{}, "Cannot attach permission '@read:/srcfoo' - you don't have it."},
		"more than is held":                     {[]string{"@read:/"}, schemas.SessionPermissions{}, "Cannot attach permission '@read:/' - you don't have it."},
		"a way out":                             {[]string{"@read:/src/../etc"}, schemas.SessionPermissions{}, `permission "@read:/src/../etc": Path must not contain "..".`},
		"no tag":                                {[]string{"@read:\n"}, schemas.SessionPermissions{}, `permission "@read:\n": Read permission requires a path.`},
	} {
		t.Run(name, func(t *testing.T) {
			scope, err := policy.ExecScope(set, c.tags, asWritten)
			if c.err != "" {
				require.EqualError(t, err, c.err)
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, c.want, scope)
			assert.Equal(t, schemas.SessionPermissions{WorkingDir: "/home", ReadDirs: []string{"/src"}, WriteDirs: []string{"/out"}, Network: true}, set, "the holder's own set never changes")
		})
	}
	lost := func(string) (string, error) { return "", errors.New("a loop") }
	scope, err := policy.ExecScope(set, []string{"@network", "@read:/src"}, lost)
	require.EqualError(t, err, `permission "@read:/src": a loop`)
	assert.Zero(t, scope)
}

func TestToolNeeds(t *testing.T) {
	needs := policy.DefaultNeeds()
	needs["peruse"] = policy.AccessRead
	for _, c := range []struct{ tool, details, want string }{
		{"Read", `{"file_path":"/a/b","offset":3}`, "@read:/a/b"},
		{"Read", `{"file_path":"b","cwd":"/a"}`, "@read:/a/b"},
		{"Read", `{"file_path":"/a/link/../b"}`, "@read:/a/link/../b"},
		{"Glob", `{"pattern":"**/*.go","path":"/src"}`, "@read:/src"},
		{"Glob", `{"pattern":"/etc/ssh/*","cwd":"/src"}`, "@read:/src/. @read:/etc/ssh/"},
		{"Glob", `{"pattern":"../../*","cwd":"/src"}`, "@read:/src/./../../"},
		{"Grep", `{"pattern":"x","cwd":"/src"}`, "@read:/src/."},
		{"Grep", `{"pattern":"/etc","path":"/src"}`, "@read:/src"},
		{"LS", `{"path":"/src"}`, "@read:/src"},
		{"Write", `{"file_path":"/a","content":"x"}`, "@write:/a"},
		{"Edit", `{"file_path":"/a","old_string":"x","new_string":"y"}`, "@write:/a"},
		{"NotebookEdit", `{"notebook_path":"/a.ipynb","new_source":"y"}`, "@write:/a.ipynb"},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a\n*** Move to: /b\n*** End Patch","cwd":"/w"}`, "@write:/w/a @write:/b"},
		{"peruse", `{"path":"/a"}`, "@read:/a"},
		{"WebFetch", `{"url":"https://example.org","prompt":"x"}`, "@network"},
		{"WebSearch", `{"query":"x"}`, "@network"},
		{"web_search", `{}`, "@network"}, {"anthropic_search", `{}`, "@network"}, {"openai_search", `{}`, "@network"},
		{"gemini_search", `{}`, "@network"}, {"perplexity_search", `{}`, "@network"}, {"exa_search", `{}`, "@network"},
		{"anthropic_fetch", `{}`, "@network"}, {"firecrawl_fetch", `{}`, "@network"}, {"web_fetch", `{}`, "@network"},
	} {
		perms, err := policy.ToolNeeds(needs, c.tool, []byte(c.details))
		require.NoError(t, err, "%s %s", c.tool, c.details)
		assert.Equal(t, c.want, strings.Join(tags(perms), " "), "%s %s", c.tool, c.details)
	}
	for _, c := range []struct{ tool, details, why string }{
		{"Bash", `{"command":"ls"}`, policy.ErrOtherTool.Error()},
		{"TodoWrite", `{}`, policy.ErrOtherTool.Error()},
		{"read_me", `{"path":"/a"}`, policy.ErrOtherTool.Error()},
		{"Read", `{}`, "its path is not known"},
		{"Read", `{"file_path":["/a"]}`, "its path is not known"},
		{"Read", `{"file_path":""}`, "is not known"},
		{"Read", `{"file_path":"~/.ssh/id"}`, "is not known"},
		{"Read", `{"file_path":"b"}`, "its path is relative"},
		{"Read", `{"file_path":"b","cwd":"src"}`, "its path is relative"},
		{"Read", `{"file_path":"/a","also":"/etc/passwd"}`, `does not know, "also"`},
		{"Read", `{"File_Path":"/a"}`, `does not know, "File_Path"`},
		{"Read", `[]`, "not a JSON object"},
		{"Grep", `{"pattern":"x","path":7,"cwd":"/src"}`, "its path is not known"},
		{"Glob", `{"pattern":"*/../../*","path":"/src"}`, "may lead anywhere"},
		{"Glob", `{"pattern":"..","path":"/src"}`, "may lead anywhere"},
		{"Glob", `{"pattern":["/etc/*"],"path":"/src"}`, "its pattern cannot be read"},
		{"Glob", `{"pattern":"{/etc,x}/*","path":"/src"}`, "may lead anywhere"},
		{"Glob", `{"pattern":"{.,x}{.,y}/*","path":"/src"}`, "may lead anywhere"},
		{"Write", `{"content":"x"}`, "its path is not known"},
		{"Write", `{"file_path":"/a","dest":"/b"}`, `does not know, "dest"`},
		{"apply_patch", `{"input":"nothing"}`, "its path is not known"},
		{"WebFetch", `{"url":"file:///etc/passwd"}`, "not a web address"},
		{"WebFetch", `{"url":7}`, "not a web address"},
	} {
		perms, err := policy.ToolNeeds(needs, c.tool, []byte(c.details))
		require.ErrorContains(t, err, c.why, "%s %s", c.tool, c.details)
		assert.Empty(t, perms)
	}
	delete(needs, "Read")
	assert.Equal(t, policy.AccessRead, policy.DefaultNeeds()["Read"], "a table of one's own")
}
