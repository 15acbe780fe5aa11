package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// trap is a way in which a command line can hide what it does. The lines in ask hide an effect in this way,
// and nod must not allow them. The lines in allow look similar but are harmless, and nod must allow them.
type trap struct {
	name       string
	ask, allow []string
}

func traps() []trap {
	return []trap{
		{"a backslash hides a flag", []string{`git diff --outpu\t=x`, `sort -\o x y`, `find . -ex\ec rm {} \;`}, []string{`cat a\ b`, `git log --one\line`}},
		{"quotes hide a flag", []string{`git diff "--out"put=x`, `sort '-o' x y`, `rg --p're' x y`}, []string{`git log "--oneline"`, `sort '-n' x`}},
		{"$'' hides anything", []string{`cat $'\x2eenv'`, `echo $'a'`, `ls $"x"`}, []string{`cat 'x$'`, `grep "a$" f.txt`}},
		{"braces expand", []string{`cat .{env,x}`, `git diff {--output=x,HEAD}`, `echo a{1..3}`}, []string{`echo '{a,b}'`, `git show HEAD@{1}`, `git log @{u}..HEAD`}},
		{"a pattern becomes a flag", []string{`git diff *`, `sort *.md`, `rg x *.go`, `git log --out*`, `grep x *.go`, `grep '' ?r src`, `egrep x [-]r`, `wc *rc`, `wc -l *.go`, `strings -- *.log`, `strings -- ?x`}, []string{`cat *.md`, `git diff -- *.go`, `sort ./*.md`, `grep x ./*.go`, `grep x -- *.go`, `wc -l ./*.go`, `strings ./*.log`, `ls *.go`}},
		// The shell replaces a pattern by the name of a matching file. This name may be any text, and the
		// command would use it as the script.
		{"a pattern becomes a script, a format or a wider pattern", []string{`sed --expression='s|'a*'|b|' README.md`, `sed --expression=p* README.md`, `printf a*d 'x[$(touch pwned)]'`, `printf -- *d 'x[$(touch pwned)]'`, `printf a?s x`, `git log --format=%*H`, `git log --pretty=%[G]x`, `git for-each-ref --sort=-*`, `git branch --format=%*`,
			`rg --glob=*.go x`, `grep -rn --include=?? '' .`, `grep -rn --include=[*] '' .`, `grep -rn --include=a[b]* '' .`, `grep -rn --include='[b]'*.go '' .`, `grep -rn --include=*x*.go '' .`, `grep -rn --inc*=a.go x .`, `stat --printf=*x a`, `head --lines=* a`},
			[]string{`grep -rn --include=*.go x .`, `grep -rn --include=*_test.go --exclude-dir=[a-c]?* x .`, `grep -rn --include=a.go --exclude=* x .`, `printf 'a*d' x`, `printf '%s\n' READ*.md`, `sed -n 1p READ*.md`}},
		{"a pattern matches a secret", []string{`cat .en?`, `cat *`, `cat .e*`, `head ~/.s*/*`, `cat ~/.aw[s]/credentials`, `cat *.pem`, `grep x .npm*`}, []string{`cat *.md`, `head src/*.go`}},
		{"secrets by other names", []string{`cat .ENV`, `cat x/../.env`, `cat ".env"`, `cat ./.env.local`, `cat //etc/shadow`, `cat ~/.aws//credentials`, `cat .ſsh/id`, `wc -l < .env`, `cat < .env`, `head -n1 -- .env`,
			`diff a.txt .env`, `git show HEAD:.env`, `git log -p -- .env`, `git log -L 1,5:.env`, `git diff -- '.en*'`, `git show 'HEAD:config/.env'`, `cat /proc/self/environ`, `cat /dev/sda`,
			`cat C:\\Users\\ann\\.ssh\\id`, `grep x --include=.env -r .`, `git diff -- ':(glob).env'`, `git blame .env`, `stat ~/.ssh/id_rsa`, `cat ~/.config/gh/hosts.yml`}, []string{`cat .env.example`, `cat env.go`, `echo .env`, `cat environment.md`, `git log -- ':!.env'`, `ls id_rsa.pub`}},
		{"a directory changes what a path means", []string{`cd ~/.aws && cat credentials`, `cd ~ && cat .netrc`, `cd ~/.config && cat gh/hosts.yml`, `cd /etc && cat shadow`, `cd - && ls`, `cd && cat x`, `cd /etc; cd ..; cat etc/shadow`}, []string{`cd src && cat main.go`, `cd ` + project + ` && ls`}},
		{"a repository elsewhere has its own configuration", []string{`cd /tmp/evil && git status`, `cd .. && git log`, `git -C /tmp status`, `git -C .. log`, `cd /tmp || git status`, `cd /tmp; cd -; git status`, `git -C ~/other diff`,
			// A cloned project may contain files that form a repository.
			`cd vendor/x && git status`, `cd src; git log`, `git -C ` + project + `/vendor diff`, `cd ` + project + `/vendor && git status`, `rtk git -C ` + project + `/vendor log`, `cd ` + project + `/.worktrees/x/vendor && git status`, `cd ` + project + `/.worktrees && git status`, `cd vendor && cd ` + project + ` || git status`, `cd vendor; cd ` + project + ` && ls; git status`},
			[]string{`cd vendor; cd ` + project + ` && git status && git log`, `cd ` + project + `/.worktrees/x && git status`, `cd src && git -C ` + project + ` status`, `git -C ` + project + ` log`, `git -C ` + project + `__worktrees/x status`}},
		{"git reads outside the repository", []string{`git diff /etc/passwd /etc/hosts`, `git diff ../../a ../../b`, `git diff a/../../../etc/passwd b`, `git diff --no-index a b`, `git diff ~/x ~/y`, `git diff src .`, `git diff -- src test`, `git diff src/.. a`}, []string{`git diff a.go b.go`, `git diff a..b`, `git diff main src`, `git diff HEAD~1 -- src`, `git diff 1a2b3c4 5d6e7f8`, `git diff v1.2 v1.3.0`, `git diff HEAD -- a b`, `git diff src`, `git diff ` + project + `/a`}},
		{"listing turns into writing", []string{`git branch -v new`, `git branch --list --no-list -D x`, `git branch -a new`, `git branch -l new`, `git tag v1`, `git stash -p list`, `git remote -v update`, `git remote -v show origin`, `git reflog expire`, `git worktree -v add x`, `git branch -vD x`, `git remote prune origin`},
			[]string{`git branch -vv`, `git branch --list 'a*'`, `git branch --contains HEAD`, `git stash list`, `git remote -v`, `git reflog -5`, `git tag -l 'v*'`}},
		{"formats that run gpg", []string{`git log --format=%G?`, `git log --pretty="%h %GK"`, `git log --pretty=mine`, `git branch --format='%(signature)'`, `git for-each-ref --sort=-signature:grade`, `git log --show-signature`}, []string{`git log --format=%H`, `git log --format=`, `git log --pretty=fuller`}},
		{"abbreviated flags", []string{`git diff --outpu=x`, `sort --outp=x y`, `git branch --del x`, `ls --al`}, []string{`ls --all`}},
		{"small languages", []string{`sed -n '1w x' a`, `sed 's/a/b/w x' a`, `sed 's/a/b/e' a`, `sed -n '/[/p;s/]/w x/p' a`, `sed --in-place s/a/b/ a`, `sed -f x a`, `sed '1e id' a`, `sed '$r .env' a`, `sed 's/a/b/
w x' a`, `awk 'BEGIN{system("id")}'`, `awk '{print > "x"}' a`, `awk '{print | "sh"}' a`, `awk '{print $1}' /inet/tcp/0/h/80`, `jq env a.json`, `jq '$ENV.X' a.json`, `jq -n '"\(env)"'`, `jq 'import "x" as x; .' a`, `printf %d 'a[$(id)]'`, `printf -v x y`, `printf %n x`},
			[]string{`sed -n 1,5p a`, `sed -n '/func/,/^}/p' a.go`, `sed 's/a/b/g' a`, `sed -n '5p;9p' a`, `sed '/^$/d' a`, `awk '{print $1}' a`, `awk -F: 'NR>3 && NR<9 {print $1, $NF}' a`, `jq -r '.a | length' a.json`, `printf '%s\n' x`}},
		{"searches of whole trees", []string{`grep -r TOKEN .`, `grep -rn x`, `grep -r x ~`, `rg x ~`, `rg --hidden x`, `rg -uu x`, `rg -g '.env*' x`, `rg -g '*' x`, `rg x /`, `rg x /home`, `grep -rn --include='*' x .`, `diff -r a b`, `diff dir1 dir2`},
			[]string{`grep -rl x src`, `grep -rn --include=*.go x .`, `rg x src`, `rg --files --hidden`, `rg -g '!x' y`, `diff a.txt b.txt`}},
		{"flags that run or write", []string{`rg --pre x y`, `rg -z x`, `sort --compress-program=x y`, `find . -exec rm {} +`, `find . -fprintf x y`, `find . -delete`, `uniq a b`, `tree -o x`, `file -C`, `diff -l a.x b.x`, `date -s 1`, `date 0101`, `hostname x`, `ps auxe`, `less x`, `command rm -v`, `command -v x; command rm x`, `type -x y`},
			[]string{`command -v go`, `find . -name '*.go' -not -path './x/*'`, `date +%s`, `date -u`, `sort -u a`, `uniq -c`}},
		{"what Zsh reads otherwise", []string{`ls =ls`, `cat =(id)`, `ls *(e:'id':)`, `echo ~+`, `echo ~ann`, `ls a=~`, `echo "$+x"`, `echo "$?[1]"`, `[ 'a[$(id)]' -eq 1 ]`, `git branch # new`, `ls # $(id)`, `ls # ; touch x`, `echo "!x"`, `echo !!`}, []string{`ls ~`, `git log -1 HEAD~3`, `echo "EXIT:$?"`, `ls # the list`, `echo "Done!"`, `[ -f x ] && echo y`, `find . ! -name x`}},
		{"variables", []string{`echo $HOME`, `X=1 ls`, `export X=1`, `ls $?x$Y`, `echo "$$"`, `echo ${?}`, `let x=1`, `declare -x A=1`, `((x=1))`}, []string{`echo $?`, `ls; echo "exit $?"`}},
		{"redirections", []string{`ls > x`, `ls &> x`, `ls 2> x`, `ls >> x`, `ls > "/dev/null "`, `ls > /dev/null/../x`, `cat < /dev/tcp/h/80`, `ls >&3`, `ls {fd}>x`, `cat <<< x`, `ls <> x`}, []string{`ls > /dev/null 2>&1`, `ls 2>/dev/null`, `ls >&2`, `wc -l < a.txt`, `ls &>/dev/null`}},
		{"builtins that run or set", []string{`source x`, `. x`, `eval ls`, `exec ls`, `alias ls=rm`, `trap x EXIT`, `hash -p x ls`, `builtin ls`, `enable -n ls`, `set -x`, `shopt -s dotglob`, `time ls`, `coproc ls`, `(ls)`, `{ ls; }`, `! ls`, `ls &`, `if true; then ls; fi`}, []string{`true`, `false || true`, `: x`}},
	}
}

func TestLinesWithATrapAsk(t *testing.T) {
	p := preset(t, policy.PresetReaders)
	for _, trap := range traps() {
		t.Run(trap.name, func(t *testing.T) {
			for _, c := range trap.ask {
				assert.NotEqual(t, policy.Allow, p.Check(bash(t, c)).Effect, "%s", c)
			}
			for _, c := range trap.allow {
				v := p.Check(bash(t, c))
				assert.Equal(t, policy.Allow, v.Effect, "%s: %s", c, v.Why)
			}
		})
	}
}

// If it is not certain which command an input runs, nod asks. For example, another JSON reader may find
// another command in the input.
func TestInputs(t *testing.T) {
	p := preset(t, policy.PresetReaders)
	for _, c := range []struct {
		input string
		want  policy.Effect
	}{
		{`{"command":"ls"}`, policy.Allow},
		{`{"command":"ls","description":"list","timeout":5}`, policy.Allow},
		{`{"cmd":"ls","workdir":"` + project + `/x","cwd":"` + project + `"}`, policy.Allow},
		{`{"command":["bash","-lc","ls"]}`, policy.Allow},
		{`{"command":"rm x","Command":"ls"}`, policy.Ask},
		{`{"command":"ls","cmd":"rm x"}`, policy.Ask},
		{`{"command":"ls","env":{"LD_PRELOAD":"x"}}`, policy.Ask},
		{`{"command":"ls","dangerouslyDisableSandbox":true}`, policy.Ask},
		{`{"command":["bash","-c","ls","x"]}`, policy.Ask},
		{`{"command":["python","-c","ls"]}`, policy.Ask},
		{`{"cmd":"git status","workdir":"/tmp/evil"}`, policy.Ask},
		{`{"cmd":"ls","workdir":"relative"}`, policy.Ask},
		{`{"command":7}`, policy.Ask}, {`{"command":null}`, policy.Ask}, {`{}`, policy.Ask}, {`[]`, policy.Ask}, {`"ls"`, policy.Ask}, {`{`, policy.Ask}, {``, policy.Ask}, {`null`, policy.Ask},
		{`{"command":"ls\u0000"}`, policy.Ask}, {`{"command":"ls \ud800"}`, policy.Ask}, {`{"command":""}`, policy.Ask}, {`{"command":"   "}`, policy.Ask}, {`{"command":"# only a comment"}`, policy.Ask},
	} {
		v := p.Check(policy.Call{ToolName: "Bash", Input: []byte(c.input), Cwd: project, Home: home})
		assert.Equal(t, c.want, v.Effect, "%s: %s", c.input, v.Why)
	}
}

func TestSecretsAskForEveryTool(t *testing.T) {
	p := pol(t, schemas.Permissions{Preset: policy.PresetProject, Allow: []string{"Read", "Edit", "Write", "Bash(cat:*)", "Grep"}})
	for _, path := range []string{".env", "config/.env.production", "~/.ssh/id_ed25519", "/home/ann/.aws/credentials", ".npmrc", "x/server.pem", "/etc/shadow", "/proc/1/environ", "~/.authinfo", "~/.config/pip/pip.conf", "~/.local/share/com.vercel.cli/auth.json", "/etc/kubernetes/admin.conf", "/home/ann/.zsh_sessions/x.history", "~/.Xauthority", "/etc/ppp/chap-secrets",
		home + "/.config/google-chrome/Default/Cookies", home + "/Library/Keychains/login.keychain-db", ".claude/settings.local.json", "~/.codex/auth.json", `C:\Users\ann\.ssh\id_rsa`} {
		for _, c := range []policy.Call{call(t, "Read", map[string]string{"file_path": path}), call(t, "Edit", map[string]string{"file_path": path}), call(t, "view", map[string]string{"path": path}),
			call(t, "Grep", map[string]string{"path": path, "pattern": "x"}), bash(t, "cat '"+path+"'")} {
			v := p.Check(c)
			assert.Equal(t, policy.Ask, v.Effect, "%s %s", c.ToolName, path)
			assert.Equal(t, schemas.RiskHigh, v.Risk, "%s %s", c.ToolName, path)
		}
	}
	for glob, want := range map[string]policy.Effect{"*.env": policy.Ask, "**/.env*": policy.Ask, "*.{pem,key}": policy.Ask, ".npmrc": policy.Ask,
		"*.go": policy.Allow, "**/*.{ts,tsx}": policy.Allow, "src/**/*_test.py": policy.Allow, "*": policy.Ask, "*.json": policy.Ask} {
		assert.Equal(t, want, p.Check(call(t, "Grep", map[string]string{"pattern": "x", "glob": glob})).Effect, glob)
	}
	for _, path := range []string{".env.example", "README.md", "internal/env.go"} {
		assert.Equal(t, policy.Allow, p.Check(call(t, "Read", map[string]string{"file_path": path})).Effect, path)
	}
}

// No rule lets an agent write nod's own files, or run the nod commands that decide, grant or configure.
func TestNoRuleAllowsNodsOwnFilesAndCommands(t *testing.T) {
	p := pol(t, schemas.Permissions{Preset: policy.PresetProject, Allow: []string{"Bash", "Write", "Edit"}}).With(schemas.RememberedRule{Tool: "Bash", Argv: []string{"nod"}, Prefix: true})
	for _, c := range []string{`nod allow perm-1`, `nod deny x`, `/usr/local/bin/nod allow x`, `sudo nod grant x`, `env X=1 nod allow x`, `"nod" allow x`, `n\od freeze`, `ls && nod allow x`, `$(nod allow x)`, `bash -c "nod allow x"`, `sh -c 'ls; nod thaw'`,
		`eval nod allow x`, `echo x | xargs nod allow`, `nod settings apply x`, `nod policy suggest --apply`, `nod policy suggest x.jsonl --apply --yes`, `if nod policy suggest --apply; then :; fi`, `nod answer x 1`, `nod session set s --timeout 1h`, `nod up`, `nod --data /x allow y`, `nod policy import claude-code`, `nod hook claude-code`, `if true; then nod allow x; fi`, `nohup nod allow x &`, `timeout 5 nod allow x`, `go run ./cmd/nod allow x`,
		`nod exec --session s -- nod allow x`, `nod exec --session s --permission @network -- sh -c "ls; nod allow x"`, `nod exec --session s -- nod exec -- nod up`,
		`echo x > ~/.local/share/nod/keys`, `cp x .nod/settings.json`, `rm -rf ~/.local/share/nod`, `cd ~/.local/share/nod && rm x`, `cd ~/.local/share && rm -rf nod`, `cd ~/.config; cp x nod/settings.json`, `tee ~/.config/nod/settings.json`, `sed -i s/a/b/ .nod/settings.json`, `dd of=.nod/x`, `echo x >> .nod/settings.json; nod (`,
		`git archive -o ~/.config/nod/settings.json HEAD`, `git archive -o.nod/settings.json HEAD`, `git archive --output=.nod/settings.json HEAD`, `git clone https://example.org/x ~/.config/nod`, `git worktree add ~/.local/share/nod/x`, `git -C ~/.local/share worktree add nod/x`, `git -C ~/.local -C share clone x nod`, `git checkout x -- .nod/settings.json`,
		`git diff --output=.nod/settings.json`, `git -c a=b restore .nod`, `git init ~/.config/nod`, `cd ~/.config/nod && git pull`, `cd ~/.config/nod && git add .`, `git config -f ~/.config/nod/settings.json a.b c`, `sort -o.nod/settings.json x`, `curl -o.nod/settings.json https://example.org/x`} {
		v := p.Check(bash(t, c))
		assert.Equal(t, policy.Deny, v.Effect, "%s", c)
		assert.Equal(t, "default nod", v.Rule, "%s", c)
		assert.NotEmpty(t, v.Why)
	}
	for _, tool := range []string{"Write", "Edit", "NotebookEdit", "write_file", "apply_patch"} {
		assert.Equal(t, policy.Deny, p.Check(call(t, tool, map[string]string{"path": ".nod/settings.json"})).Effect, tool)
	}
	for _, c := range []string{`cat ~/.local/share/nod/run.json`, `nod pending`, `nod policy explain 'ls'`, `nod exec --session s -- make`, `git commit -m "nod allow is new"`, `git add .nod/settings.json`, `git commit -m x .nod/settings.json`, `git diff .nod/settings.json`, `git -C ~/.config/nod log -p`, `cd ~/.config/nod && git status`, `git stash list`, `echo "nod allow x"`, `rm -rf build`, `grep "nod allow" README.md`} {
		assert.NotEqual(t, policy.Deny, preset(t, "").Check(bash(t, c)).Effect, "%s", c)
	}
	assert.Equal(t, policy.Ask, p.Check(bash(t, `cat ~/.local/share/nod/run.json`)).Effect)
	for _, rules := range []schemas.Permissions{{}, {Preset: policy.PresetProject}} {
		assert.Equal(t, policy.Ask, pol(t, rules).Check(bash(t, `nod exec --session s -- ls`)).Effect, "what runs inside less is still asked for")
	}
	denied := pol(t, schemas.Permissions{Allow: []string{"Bash"}, Deny: []string{"Bash(rm:*)"}})
	assert.Equal(t, policy.Deny, denied.Check(bash(t, `nod exec --session s -- rm x`)).Effect)
}
