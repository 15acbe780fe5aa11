package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// classes returns the classes of attacks that a red team found. Each class has the attack itself, variants of
// it, and similar harmless lines.
func classes() []trap {
	return []trap{
		{"a flag whose value must be attached", []string{`git diff -U ~ empty`, `git diff --unified ~ empty`, `git diff --unified ` + home + ` empty.md`, `git log -p -U ~ empty`, `git diff --stat ~ empty`, `git diff -M ~ x`, `git show -U .env`, `git diff --no-index -U ~ empty`, `rtk git diff -U ~ empty`},
			[]string{`git diff -U5`, `git diff -U5 main`, `git diff --unified=5 main`, `git log -n 3 -p -U1`}},
		{"a pattern that can match a secret", []string{`cat .?nv.ci`, `cat .[e]nv.ci`, `cat .e*.ci`, `cat .e??*`, `cat .*v.json`, `head id_*`, `head i?_rsa.bak`, `cat secret*.toml`, `head [i]d_ed25519*k`, `cat *_rsa.old`, `cat i*_work`, `cat .vault?pass.txt`, `rg -g '.e*.ci' T`, `rg -g '.?nv.*' T`, `rg -g '*.ci' T`, `rg -g '[.]env*' T`, `grep -rn --include='.e*.ci' T .`, `grep -rn --include='?env.ci' T .`, `git log -p -- '.?nv.ci'`, `git diff -- '.e*.ci'`, `cat ~/.aws/cred*`, `cat /etc/shado?`, `cat /**/shadow`, `cat /run/**/token`, `cat /e*/sha*`, `tail kube_conf* .kub?/x`},
			[]string{`cat *.md`, `head -3 src/*.go`, `cat *_test.go`, `cat e*.go`, `cat i*.ts`, `rg -g '*.go' T`, `rg -g '*_test.py' T`, `rg -g 'src/**/*.ts' T`, `git log -p -- '*.go'`, `wc -l ./*.txt`}},
		{"an expansion whose value is not known", []string{`cat ~/.m$?/settings.xml`, `cat .en$?`, `cat x$?`, `cat < x$?`, `cat "x$?"`, `head -n $? x`, `sed -n "$?p" x`, `cd $? && ls`, `git log -$?`, `git show HEAD~$?`, `grep $? x`, `ls x$?`, `cat $#`, `cat x$#`, `cat x$$`, `cat x$!`, `cat "x$$"`, `head -$# x`, `ls $-`, `find . -name $?`, `[ -f x$? ]`, `test -r $?`, `rg $? .`, `tr $? x`, `which x$?`, `basename $?`, `date +$?`},
			[]string{`echo $?`, `ls; echo "exit $?"`, `echo x$?y`, `printf '%s\n' "$?"`, `printf 'exit %s\n' $?`, `[ "$?" != x ] && echo ok`, `test $? != x && echo ok`, `[ -n "$?" ]`}},
		{"a file of arguments", []string{`strings -n @f`, `strings -n @f x`, `strings @f`, `strings -- @f`, `strings -t @f x`, `strings -n 5 @f`, `strings --bytes @f x`, `strings --radix=x @f`, `strings '@f'`, `strings \@f`},
			[]string{`strings a@b`, `strings -n 5 a`}},
		{"other systems take other words as the script", []string{`sed -n 'w f' -e p x`, `sed 'w f' -e p x`, `sed 'e id' -n -e p x`, `sed 's/a/b/w f' -e p x`, `sed 'r .env' --expression p x`, `sed x -e p .env`, `grep x -e .env`, `grep x y -e .env`, `grep x -A .env y`, `egrep x -m 1 -e .npmrc a`},
			[]string{`sed -n -e p x`, `sed -n 5p x`, `sed -e p -e d x`, `sed -n p -e d x`, `grep x a -n`, `grep x -n a -A 3`, `grep -e x -e y a`}},
		{"what fish reads otherwise", []string{`echo 'x\' 'y; touch z; echo '`, `echo 'x\'; touch z; echo '`, `cat 'a\\' 'b; touch z; '`, `cat \x2eenv`, `cat \u002eenv`, `cat \U0000002eenv`, `cat \056env`, `cat \X2eenv`, `cat a\cb`, `ls a\nb`, `echo \x3b`, `cat "\x2eenv" .\x65nv`, `grep 'a\\'\''b' x`, `rg \n x`},
			[]string{`cat a\ b`, `git log --one\line`, `grep 'a\.b' x`, `grep 'a\|b' x`, `sed -n '/^\s*x/p' a`, `echo "a\nb"`, `rg '\bfoo\b' src`, `grep -P '\d+' x`}},
		{"a list of secrets is never whole", []string{`cat ~/.modal.toml`, `cat ~/.qwen/oauth_creds.json`, `cat ~/.anything`, `cat ~/.config/anything/x`, `cat ~/.local/share/x/y`, `cat /home/bob/.x`, `head /root/.x`, `grep x ~/.bashrc`, `cat ~/.zshrc`, `rg x ~/.config/nvim`, `sed -n 1p ~/.profile`, `cd ~ && cat .modal.toml`, `cd .. && cat .x`, `cat ../.x`, `cat ../other/.x/y`, `cat ~/other/.foo`, `wc < ~/.x`, `wc -l < ../.x`, `cat ~/Library/x.plist`, `cat ~/AppData/Roaming/x`, `cat 'C:\Users\ann\AppData\x'`, `cat ~/.claude/projects/x/y.jsonl`, `cat ~/.cargo/config.toml`, `cat ~/.m2/x.xml`, `cat ~/.gradle/init.gradle`, `jq . ~/.x.json`, `diff ~/.a.txt ~/.b.txt`, `cat ~/.m*/x`, `cd ~/.config/x && cat y`,
			`cd ~/.config/x && rg y`, `cd ~/.x && grep -rn --include=*.go y .`, `cd ~/.x && head *`, `cat vpn.ovpn`, `cat server.key.bak`, `cat server.pem.old`, `cat wp-config.php`, `cat wp-config.php.bak`, `cat wp-config-prod.php`, `cat config/credentials.yml`, `cat credentials`, `cat gcp-credentials.json`, `cat app-secrets.yaml`, `cat k8s/secret.yaml`, `cat .api_token`, `cat .secret.json`, `cat .vault-token.bak`, `cat token.json`, `cat auth.json`, `cat x.token`, `cat db.password`, `cat user-passwords.csv`, `cat id_ecdsa_sk`, `cat *.ovpn`, `cat /etc/letsencrypt/live/x/privkey1`, `cat /var/lib/jenkins/x`, `cat /etc/mysql/debian.cnf`},
			[]string{`ls ~/.config`, `ls -la ~/.claude`, `[ -f ~/.bashrc ] && echo y`, `find ~/.config -name x`, `stat ~/.bashrc`, `cat ~/.cargo/registry/src/x/lib.rs`, `cat ~/.rustup/toolchains/stable/lib/x.rs`, `cat ~/.nvm/versions/node/v20/README.md`, `cat ~/.m2/repository/a/b.pom`, `cat ~/.claude/CLAUDE.md`, `sed -n 1,5p ~/.claude/skills/x/SKILL.md`, `cat ~/go/pkg/mod/x/y.go`, `cat ../other/README.md`, `cat ../other/.github/x.yml`, `cat .planning/x.md`, `cat .foo`, `cat ` + project + `/.foo/x`, `cat src/token.go`, `cat src/credentials_test.py`, `cat secrets.go`, `cat src/auth.ts`, `cat tokens.ts`, `cat password_reset.html`, `cat docs/secrets.md`}},
	}
}

func TestClassesOfAttacksAsk(t *testing.T) {
	for _, class := range classes() {
		t.Run(class.name, func(t *testing.T) {
			for _, name := range []string{policy.PresetDesign, policy.PresetReaders, policy.PresetProject} {
				p := preset(t, name)
				for _, c := range class.ask {
					assert.NotEqual(t, policy.Allow, p.Check(bash(t, c)).Effect, "%s: %s", name, c)
				}
			}
			p := preset(t, policy.PresetReaders)
			for _, c := range class.allow {
				v := p.Check(bash(t, c))
				assert.Equal(t, policy.Allow, v.Effect, "%s: %s", c, v.Why)
			}
		})
	}
}

// nod asks about a relative path or a repository if the command's directory is unknown. The directory is
// unknown if the host does not tell it, or if an earlier command may have changed the shell's directory.
func TestCommandsInAnUnknownDirectoryAsk(t *testing.T) {
	p := pol(t, schemas.Permissions{Preset: policy.PresetProject, Allow: []string{"Bash(make:*)"}}).
		With(schemas.RememberedRule{Tool: "Bash", Argv: []string{"go", "test"}, Prefix: true, Project: project})
	kept := func(command string) policy.Call {
		return call(t, "bash", map[string]string{"command": command, "sessionId": "main", "cwd": project})
	}
	unnamed := func(command string) policy.Call {
		c := bash(t, command)
		c.Cwd = ""
		return c
	}
	for i, at := range []func(string) policy.Call{kept, unnamed} {
		for _, c := range []string{"cat credentials", "cat config", "cat README.md", "head -n 5 x", "git status", "git log -1", "git -C . log", "git -C x log", "rtk git status", "rg TOKEN", "rg TOKEN .", "grep -rn --include=*.go x .", "grep x a", "sed -n 1p a", "wc -l < a", "jq . a.json", "diff a.go b.go", "make x", "go test ./...", "cd x && cat y", "cd .. && git status", "cd " + project + "; cat x", "cd " + project + "; git status", "cd " + project + " || cat x", "cat ./x", "cat *.md", "awk '{print}' x"} {
			assert.NotEqual(t, policy.Allow, p.Check(at(c)).Effect, c)
			_, changed := p.Harden(at(c))
			assert.False(t, changed, c)
			for _, reach := range p.Remember(at(c)) { // a rule made from a call without a directory must be marked as a rule for any directory
				for _, rule := range reach.Rules {
					assert.True(t, i == 1 && rule.Elsewhere && !rule.Prefix, "%s: %+v", c, rule)
				}
			}
		}
		for _, c := range []string{"ls", "ls -la src", "pwd", "echo x", "cat " + project + "/README.md", "git -C " + project + " status", "cd " + project + " && git status && cat README.md", "cd " + project + "/src && cat main.go", "ls | head -n 5", "ps -ef | grep node", "rg x " + project + "/src", "find . -name x", "date", "echo x | cut -d , -f 1"} {
			v := p.Check(at(c))
			assert.Equal(t, policy.Allow, v.Effect, "%s: %s", c, v.Why)
		}
	}
	for _, raw := range []string{`{"command":"cat x","sessionId":7}`, `{"command":"cat x","sessionId":"a","workdir":"` + project + `"}`} {
		assert.Equal(t, policy.Ask, p.Check(policy.Call{ToolName: "bash", Input: []byte(raw), Cwd: project, Project: project, Home: home}).Effect, raw)
	}
	assert.Equal(t, policy.Allow, p.Check(call(t, "bash", map[string]string{"command": "cat x", "sessionId": ""})).Effect)
}

// If a Grep call has a file filter, ripgrep searches every file that matches the filter, even hidden and
// ignored files.
func TestFiltersOfSearchesThatMatchSecretsAsk(t *testing.T) {
	p := preset(t, policy.PresetReaders)
	for _, glob := range []string{"*", "**", "**/*", "*.json", "*.{json,go}", "*.yml", "*.toml", "src/**", ".*", "*rc", "*.e*", "[a-z.]*", "?env", "config*"} {
		for _, key := range []string{"glob", "include", "include_pattern", "includePattern"} {
			assert.Equal(t, policy.Ask, p.Check(call(t, "Grep", map[string]string{"pattern": "x", key: glob})).Effect, "%s %s", key, glob)
		}
	}
	for _, glob := range []string{"*.go", "**/*.{ts,tsx}", "src/**/*_test.py", "*.md", "*.{go,rs}", "!*.json"} {
		assert.Equal(t, policy.Allow, p.Check(call(t, "Grep", map[string]string{"pattern": "x", "glob": glob})).Effect, glob)
	}
	for _, kind := range []string{"json", "all", "yaml", "config", "sh", "toml", "nosuchtype"} {
		assert.Equal(t, policy.Ask, p.Check(call(t, "Grep", map[string]string{"pattern": "x", "type": kind})).Effect, kind)
		for _, c := range []string{"rg -t" + kind + " T", "rg -t " + kind + " T", "rg --type=" + kind + " T", "rg --type " + kind + " T", "rg -tgo -t" + kind + " T", "rg -ni -t" + kind + " T"} {
			assert.NotEqual(t, policy.Allow, p.Check(bash(t, c)).Effect, c)
		}
	}
	for _, kind := range []string{"go", "py", "rust", "js", "ts", "md"} {
		assert.Equal(t, policy.Allow, p.Check(call(t, "Grep", map[string]string{"pattern": "x", "type": kind})).Effect, kind)
		assert.Equal(t, policy.Allow, p.Check(bash(t, "rg -t"+kind+" T")).Effect, kind)
	}
	for _, c := range []string{"rg -tjson -l T", "rg -Tjson T", "rg --type-not json T", "rg -tjson --files"} {
		assert.Equal(t, policy.Allow, p.Check(bash(t, c)).Effect, c)
	}
	for _, c := range []string{"grep -r TOKEN next.js", "grep -rn TOKEN socket.io", "grep -R TOKEN three.js", "grep -r TOKEN a.go b.js", "grep --recursive TOKEN x.md", "grep -rh '' chart.js"} {
		assert.NotEqual(t, policy.Allow, p.Check(bash(t, c)).Effect, c)
	}
}
