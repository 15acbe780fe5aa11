package commands

import "maps"

// newTable returns every known command. Each command has one entry.
//
// If a preset should allow a command that only reads, add an entry with the preset's level and the
// flags with which the command only reads. Leave out flags that write (-o), run a program (--pre,
// --compress-program, -l of diff), read a list of files from a file (--files0-from), or follow
// links to files that nod cannot see.
func newTable() map[string]*Command {
	table := map[string]*Command{}
	for _, section := range sections() {
		maps.Copy(table, section)
	}
	return compile(table)
}

// sections returns the parts of the table. Each command is in exactly one of them.
func sections() []map[string]*Command {
	return []map[string]*Command{
		listers(), builtins(), textReaders(), fileDescribers(), machineDescribers(), shellChecked(), gitReaders(), approvable(), harmful(), runners(), hazardous(), wrappers(),
	}
}

// listers returns the commands that list and print files.
func listers() map[string]*Command {
	return map[string]*Command{
		"ls":    {level: LevelDesign, short: "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1", value: "ITw", operands: unlimited, anyFlag: true, Lists: true, long: "all almost-all author escape block-size: ignore-backups color= directory dired classify= file-type format: full-time group-directories-first no-group human-readable si dereference dereference-command-line hide: hyperlink= indicator-style: inode ignore: kibibytes numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style: reverse recursive size sort: time: time-style: tabsize: width: context zero", follows: "L dereference"},
		"cat":   {level: LevelDesign, short: "AbeEnstTuv", operands: unlimited, anyFlag: true, long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting"},
		"head":  {level: LevelDesign, short: "qvz", value: "nc", digits: true, operands: unlimited, anyFlag: true, long: "bytes: lines: quiet silent verbose zero-terminated"},
		"tail":  {level: LevelDesign, short: "fFqrvz", value: "ncbs", digits: true, operands: unlimited, anyFlag: true, long: "bytes: lines: follow= retry quiet silent verbose sleep-interval: zero-terminated"},
		"pwd":   {level: LevelDesign, short: "LP", long: "logical physical"},
		"echo":  {level: LevelDesign, operands: unlimited, Text: true, raw: true},
		"which": {level: LevelDesign, short: "a", operands: unlimited, Text: true, long: "all"},
	}
}

// builtins returns the shells' builtins without effects.
func builtins() map[string]*Command {
	return map[string]*Command{
		"true":    {level: LevelReaders},
		"false":   {level: LevelReaders},
		":":       {level: LevelReaders, raw: true, Text: true},
		"sleep":   {level: LevelReaders, operands: 1, check: checkSleep},
		"type":    {level: LevelReaders, short: "atpP", operands: unlimited, Text: true},
		"command": {level: LevelReaders, operands: unlimited, Text: true, short: "vV", ordered: true, check: checkCommandV, Wraps: true},
		"printf":  {level: LevelReaders, operands: unlimited, Text: true, check: checkPrintf},
	}
}

func textReaders() map[string]*Command {
	return map[string]*Command{
		"wc":     {level: LevelReaders, short: "lcwmL", operands: unlimited, long: "bytes chars lines words max-line-length total:"},
		"sort":   {level: LevelReaders, short: "bdfgiMhnRrVcCmsuz", value: "kt", operands: unlimited, long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort reverse version-sort check= key: merge stable field-separator: unique zero-terminated", runsAny: true},
		"uniq":   {level: LevelReaders, short: "cdDiuz", value: "fsw", operands: 1, ordered: true, long: "count repeated all-repeated= skip-fields: ignore-case skip-chars: unique check-chars: zero-terminated group="},
		"cut":    {level: LevelReaders, short: "nsz", value: "bcdf", operands: unlimited, long: "bytes: characters: delimiter: fields: complement only-delimited output-delimiter: zero-terminated"},
		"nl":     {level: LevelReaders, short: "p", value: "bdfhilnsvw", operands: unlimited, long: "body-numbering: section-delimiter: footer-numbering: header-numbering: line-increment: join-blank-lines: number-format: no-renumber number-separator: starting-line-number: number-width:"},
		"tr":     {level: LevelReaders, short: "cCdst", operands: 2, Text: true, long: "complement delete squeeze-repeats truncate-set1"},
		"rev":    {level: LevelReaders, operands: unlimited},
		"tac":    {level: LevelReaders, short: "br", value: "s", operands: unlimited, long: "before regex separator:"},
		"paste":  {level: LevelReaders, short: "sz", value: "d", operands: unlimited, long: "delimiters: serial zero-terminated"},
		"fold":   {level: LevelReaders, short: "bs", value: "w", operands: unlimited, long: "bytes spaces width:"},
		"expand": {level: LevelReaders, short: "i", value: "t", operands: unlimited, long: "initial tabs:"},
		"column": {level: LevelReaders, short: "tx", value: "cs", operands: unlimited},
		"comm":   {level: LevelReaders, short: "123", operands: 2, long: "check-order nocheck-order output-delimiter: total zero-terminated"},
		"cmp":    {level: LevelReaders, short: "bls", operands: 2, long: "print-bytes verbose quiet silent"},
		"diff":   {level: LevelReaders, short: "abBcdeEiNpqrstTuwy", value: "CUWx", operands: 2, long: "normal brief report-identical-files context= unified= ed side-by-side width: left-column suppress-common-lines show-c-function recursive new-file ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines strip-trailing-cr text minimal color= no-dereference exclude:", check: checkDiff, follows: "r recursive"},
		"seq":    {level: LevelReaders, short: "w", value: "s", operands: 3, Text: true},
		"grep":   grepCommand(),
		"egrep":  grepCommand(),
		"fgrep":  grepCommand(),
		"rg":     rgCommand(),
		"sed":    {level: LevelReaders, short: "nErsuz", value: "e", operands: unlimited, Loose: true, script: "e", getopt: true, long: "quiet silent regexp-extended separate unbuffered null-data expression: posix sandbox", check: checkSed, runsAny: true},
		"awk":    {level: LevelReaders, value: "F", operands: unlimited, Loose: true, script: "-", ordered: true, check: checkAwk, runsAny: true},
		"jq":     {level: LevelReaders, short: "rcnesSRjaCM", operands: unlimited, Loose: true, script: "-", check: checkJq, long: "raw-output compact-output null-input exit-status slurp sort-keys raw-input join-output ascii-output color-output monochrome-output tab stream seq indent:"},
	}
}

func fileDescribers() map[string]*Command {
	return map[string]*Command{
		"stat":      {NamesOnly: true, level: LevelReaders, short: "LtxsnFlqrf", value: "c", operands: unlimited, long: "dereference format: printf: terse file-system"},
		"file":      {level: LevelReaders, short: "bhiLkNr", operands: unlimited, long: "brief mime mime-type mime-encoding dereference no-dereference no-pad raw keep-going"},
		"du":        {NamesOnly: true, level: LevelReaders, short: "abchHklLmsSx0", value: "dBIt", operands: unlimited, long: "all apparent-size block-size: bytes total dereference max-depth: human-readable inodes si summarize separate-dirs one-file-system threshold: exclude: time=", follows: "L dereference"},
		"df":        {level: LevelReaders, short: "ahHiklPTm", value: "Bt", operands: unlimited, long: "all block-size: human-readable si inodes local output= portability total type: print-type"},
		"basename":  {level: LevelReaders, short: "az", value: "s", operands: unlimited, Text: true, long: "multiple suffix: zero"},
		"dirname":   {level: LevelReaders, short: "z", operands: unlimited, Text: true, long: "zero"},
		"realpath":  {NamesOnly: true, level: LevelReaders, short: "eLmPqsz", operands: unlimited, long: "canonicalize-existing canonicalize-missing logical physical quiet strip no-symlinks zero relative-to: relative-base:"},
		"readlink":  {NamesOnly: true, level: LevelReaders, short: "efmnqsvz", operands: unlimited, long: "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero"},
		"tree":      {NamesOnly: true, level: LevelReaders, short: "adfilxCAnsShpugDFQNtUrcvJX", value: "LPI", apart: true, operands: unlimited, long: "dirsfirst filesfirst noreport prune gitignore du si inodes filelimit: matchdirs ignore-case", follows: "l"},
		"md5sum":    {level: LevelReaders, short: "bt", operands: unlimited},
		"sha1sum":   {level: LevelReaders, short: "bt", operands: unlimited},
		"sha256sum": {level: LevelReaders, short: "bt", operands: unlimited},
		"cksum":     {level: LevelReaders, operands: unlimited},
		"shasum":    {level: LevelReaders, short: "bt", value: "a", operands: unlimited, long: "algorithm: binary text"},
		"hexdump":   {level: LevelReaders, short: "bcCdovx", value: "ns", operands: unlimited},
		"od":        {level: LevelReaders, short: "abcdfiloxsvx", value: "AjNtS", tail: "w", operands: unlimited, long: "address-radix: skip-bytes: read-bytes: format: output-duplicates width="},
		"base64":    {level: LevelReaders, short: "dD", value: "w", operands: 1, long: "decode wrap:"},
		"strings":   {level: LevelReaders, short: "a", value: "nt", operands: unlimited, long: "all bytes: radix:", check: checkStrings},
	}
}

func machineDescribers() map[string]*Command {
	return map[string]*Command{
		"ps":       {level: LevelReaders, short: "AefFjlw", value: "p", check: checkPs}, // -u is left out on purpose: if no user is named xe, ps takes -uxe for three flags, and shows environments
		"date":     {level: LevelReaders, short: "uR", value: "d", tail: "I", operands: 1, Text: true, long: "date: utc universal iso-8601= rfc-3339: rfc-email", check: checkDate},
		"whoami":   {level: LevelReaders},
		"id":       {level: LevelReaders, short: "agGnruz", operands: 1, Text: true},
		"uname":    {level: LevelReaders, short: "amnprsvio", long: "all kernel-name nodename kernel-release kernel-version machine processor operating-system"},
		"arch":     {level: LevelReaders, Wraps: true},
		"nproc":    {level: LevelReaders, long: "all"},
		"hostname": {level: LevelReaders},
		"uptime":   {level: LevelReaders, short: "ps"},
		"free":     {level: LevelReaders, short: "bghkmtw"},
		"tty":      {level: LevelReaders, short: "s"},
	}
}

// shellChecked returns the commands that package shell checks with its own grammars.
func shellChecked() map[string]*Command {
	return map[string]*Command{
		"cd":              {NamesOnly: true, level: LevelReaders, Special: true},
		"test":            {NamesOnly: true, level: LevelReaders, Special: true},
		"find":            {NamesOnly: true, level: LevelReaders, Special: true, Wraps: true},
		"git":             {level: LevelDesign, Special: true, Harm: changesRepository, runsAny: true},
		"rtk":             {level: LevelReaders, Special: true, Wraps: true},
		"workmux":         {level: LevelReaders, Special: true},
		"workmux status":  {level: LevelReaders, operands: unlimited, long: "json"},
		"workmux list":    {level: LevelReaders, operands: unlimited, long: "json all"},
		"workmux capture": {level: LevelReaders, operands: 1, value: "n", long: "lines:"},
	}
}

// gitReaders returns subcommands of git, and the flags with which these subcommands only read.
func gitReaders() map[string]*Command {
	return map[string]*Command{
		"git status":         {level: LevelDesign, short: "sbz", tail: "uM", operands: unlimited, long: "short branch show-stash porcelain= long untracked-files= ignore-submodules= ignored= column= no-column ahead-behind no-ahead-behind renames no-renames find-renames= null"},
		"git log":            gitLog(),
		"git show":           gitLog(),
		"git diff":           {level: LevelDesign, short: diffShort, value: "lSGI", tail: diffTail, operands: unlimited, long: diffLong, check: gitDiff, Differ: true},
		"git branch":         {level: LevelDesign, Text: true, short: "arvil", operands: unlimited, check: gitBranch, long: "all remotes verbose list show-current contains= no-contains= merged= no-merged= points-at: sort: format: color= no-color column= no-column abbrev= no-abbrev ignore-case omit-empty", Harm: discardsChanges},
		"git shortlog":       {level: LevelReaders, short: "nsec", tail: "w", digits: true, operands: unlimited, long: "numbered summary email committer since: after: until: before: author: no-merges merges all group: format: no-ext-diff no-textconv", check: gitFormat},
		"git reflog show":    gitReflog(),
		"git reflog":         {level: LevelReaders, value: "n", digits: true, Harm: discardsChanges},
		"git rev-parse":      {level: LevelReaders, short: "q", operands: unlimited, long: "verify quiet short= abbrev-ref= symbolic symbolic-full-name show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository all branches= tags= remotes= show-superproject-working-tree"},
		"git ls-files":       {level: LevelReaders, short: "cdmoistuvzk", value: "x", operands: unlimited, long: "cached deleted modified others ignored stage unmerged killed directory no-empty-directory eol error-unmatch full-name exclude: exclude-standard abbrev= deduplicate"},
		"git ls-tree":        {level: LevelReaders, short: "drtlz", operands: unlimited, long: "long name-only name-status full-name full-tree abbrev= object-only"},
		"git blame":          {level: LevelReaders, short: "bcefhklnpstw", value: "L", tail: "CM", operands: unlimited, long: "root show-stats porcelain line-porcelain show-name show-number show-email date: abbrev= color-lines color-by-age no-ext-diff no-textconv", Differ: true},
		"git cat-file":       {level: LevelReaders, short: "epts", operands: 2},
		"git describe":       {level: LevelReaders, operands: unlimited, long: "all tags contains abbrev= candidates: exact-match long match: exclude: always first-parent dirty= broken="},
		"git merge-base":     {level: LevelReaders, short: "a", operands: unlimited, long: "all octopus independent is-ancestor fork-point"},
		"git rev-list":       {level: LevelReaders, value: "n", digits: true, operands: unlimited, long: "count all branches= tags= remotes= max-count: skip: since: after: until: before: author: no-merges merges first-parent left-right cherry-pick reverse topo-order date-order parents objects left-only right-only oneline abbrev-commit"},
		"git name-rev":       {level: LevelReaders, operands: unlimited, long: "tags name-only always all"},
		"git for-each-ref":   {level: LevelReaders, operands: unlimited, long: "count: sort: format: points-at: merged= no-merged= contains= no-contains=", check: gitFormat},
		"git grep":           {level: LevelReaders, short: "aiIwvhHEGFPnlLzocpWq", value: "eABCm", operands: unlimited, Loose: true, script: "e", long: "text ignore-case word-regexp invert-match full-name extended-regexp basic-regexp perl-regexp fixed-strings line-number column files-with-matches name-only files-without-match null only-matching count color= no-color break heading show-function after-context: before-context: context: function-context max-count: max-depth: cached and or not all-match quiet no-textconv"},
		"git remote":         {level: LevelReaders, short: "v", long: "verbose"},
		"git remote get-url": {level: LevelReaders, operands: 1, long: "all push"},
		"git tag":            {level: LevelReaders, Text: true, short: "l", tail: "n", operands: unlimited, long: "list sort: format: contains= no-contains= merged= no-merged= points-at: column= no-column color=", check: gitTag, Harm: changesRepository},
		"git stash list":     {level: LevelReaders, digits: true, long: "oneline stat no-ext-diff no-textconv", Differ: true},
		"git stash show":     {level: LevelReaders, short: "pu", operands: 1, long: "stat patch name-only name-status no-ext-diff no-textconv", Differ: true},
		"git worktree list":  {level: LevelReaders, short: "vz", long: "porcelain verbose"},
		"git check-ignore":   {level: LevelReaders, short: "qvnz", operands: unlimited, long: "quiet verbose non-matching no-index"},
		"git count-objects":  {level: LevelReaders, short: "vH", long: "verbose human-readable"},
	}
}

// approvable returns commands that no preset allows. Their flags may follow the words of a
// remembered rule.
func approvable() map[string]*Command {
	return map[string]*Command{
		"git add":              {level: levelApproved, short: "Aunv", operands: unlimited, long: "all update dry-run verbose intent-to-add", Harm: changesRepository, runner: true},
		"git commit":           {level: levelApproved, short: "aqvs", value: "m", operands: unlimited, long: "all quiet verbose signoff message: amend no-edit", Harm: changesRepository, runner: true},
		"git fetch":            {level: levelApproved, short: "pqvat", operands: unlimited, long: "all prune tags no-tags quiet verbose depth:", check: checkRemote, Harm: usesNetwork, runner: true},
		"npm view":             {level: levelApproved, operands: unlimited, Text: true, long: "json", check: checkRemote, Harm: usesNetwork, runner: true},
		"npm ls":               {level: levelApproved, operands: unlimited, Text: true, short: "a", long: "json all depth:", runner: true},
		"docker ps":            {level: levelApproved, short: "aqln", long: "all no-trunc quiet latest size filter:", runner: true},
		"docker logs":          {level: levelApproved, short: "ft", value: "n", operands: 1, long: "follow timestamps tail: since: until:", runner: true},
		"docker compose ps":    {level: levelApproved, short: "aq", operands: unlimited, long: "all quiet services", runner: true},
		"docker compose logs":  {level: levelApproved, short: "ft", value: "n", operands: unlimited, long: "follow timestamps tail: since: until: no-color", runner: true},
		"tmux list-sessions":   {level: levelApproved, runner: true},
		"tmux list-windows":    {level: levelApproved, short: "a", value: "t", check: checkTmux, runner: true},
		"tmux list-panes":      {level: levelApproved, short: "as", value: "t", check: checkTmux, runner: true},
		"tmux capture-pane":    {level: levelApproved, short: "pJe", value: "tSE", check: checkTmux, runner: true},
		"tmux display-message": {level: levelApproved, operands: 1, Text: true, short: "p", value: "t", check: checkTmux, runner: true},
		"gh pr view":           ghRead(),
		"gh pr list":           ghRead(),
		"gh pr checks":         ghRead(),
		"gh pr diff":           ghRead(),
		"gh pr status":         ghRead(),
		"gh issue view":        ghRead(),
		"gh issue list":        ghRead(),
		"gh run view":          ghRead(),
		"gh run list":          ghRead(),
		"gh repo view":         ghRead(),
		"gh run watch":         ghRead(),
		"gh search issues":     ghRead(),
		"gh search prs":        ghRead(),
		"gh workflow list":     ghRead(),
		"gh workflow view":     ghRead(),
		"gh release list":      ghRead(),
		"gh release view":      ghRead(),
		"gh label list":        ghRead(),
		"gh api":               {level: levelApproved, operands: 1, Text: true, value: "q", long: "jq: paginate", check: checkGhAPI, Harm: usesNetwork, runner: true},
	}
}

// harmful returns the commands that do harm, by kind of harm.
func harmful() map[string]*Command {
	return map[string]*Command{
		"rm": {Harm: deletes}, "rmdir": {Harm: deletes}, "unlink": {Harm: deletes}, "git rm": {Harm: deletes}, "trash": {Harm: deletes},
		"shred": {Harm: destroys}, "dd": {Harm: destroys}, "wipefs": {Harm: destroys}, "truncate": {Harm: destroys}, "srm": {Harm: destroys},
		"mkfs": {Harm: writesDisk}, "fdisk": {Harm: writesDisk}, "parted": {Harm: writesDisk}, "diskutil": {Harm: writesDisk}, "mount": {Harm: writesDisk},
		"umount": {Harm: writesDisk},
		"cp":     {Harm: writesFiles}, "mv": {Harm: writesFiles}, "mkdir": {Harm: writesFiles}, "touch": {Harm: writesFiles}, "tee": {Harm: writesFiles},
		"ln": {Harm: writesFiles}, "install": {Harm: writesFiles}, "patch": {Harm: writesFiles}, "unzip": {Harm: writesFiles},
		"tar": {Harm: writesFiles, runsAny: true}, "split": {Harm: writesFiles, runsAny: true}, "rsync": {Harm: writesFiles, runsAny: true},
		"cpio": {Harm: writesFiles}, "7z": {Harm: writesFiles}, "zip": {Harm: writesFiles, runsAny: true},
		"chmod": {Harm: changesAccess}, "chown": {Harm: changesAccess}, "chgrp": {Harm: changesAccess}, "setfacl": {Harm: changesAccess},
		"chattr": {Harm: changesAccess}, "umask": {Harm: changesAccess},
		"sudo": {Harm: runsAsRoot, Wraps: true}, "doas": {Harm: runsAsRoot, Wraps: true}, "su": {Harm: runsAsRoot, Wraps: true, Interprets: true},
		"runuser": {Harm: runsAsRoot, Wraps: true}, "pkexec": {Harm: runsAsRoot},
		"curl": {Harm: usesNetwork}, "wget": {Harm: usesNetwork}, "nc": {Harm: usesNetwork, runsAny: true}, "ncat": {Harm: usesNetwork, runsAny: true},
		"telnet": {Harm: usesNetwork}, "ftp": {Harm: usesNetwork}, "sftp": {Harm: usesNetwork, runsAny: true}, "ping": {Harm: usesNetwork},
		"dig": {Harm: usesNetwork}, "nslookup": {Harm: usesNetwork}, "host": {Harm: usesNetwork}, "git pull": {Harm: usesNetwork},
		"git clone": {Harm: usesNetwork}, "git ls-remote": {Harm: usesNetwork}, "gh": {Harm: usesNetwork}, "glab": {Harm: usesNetwork},
		"http": {Harm: usesNetwork}, "openssl": {Harm: usesNetwork}, "mail": {Harm: usesNetwork, runsAny: true}, "mailx": {Harm: usesNetwork, runsAny: true},
		"mutt": {Harm: usesNetwork, runsAny: true}, "sendmail": {Harm: usesNetwork, runsAny: true}, "lftp": {Harm: usesNetwork, runsAny: true}, "socat": {Harm: usesNetwork, runsAny: true},
		"ssh": {Harm: runsRemotely, Interprets: true}, "scp": {Harm: copiesRemotely, runsAny: true}, "mosh": {Harm: runsRemotely},
		"ansible": {Harm: runsRemotely}, "ansible-playbook": {Harm: runsRemotely},
		"git push": {Harm: publishes}, "npm publish": {Harm: publishes}, "cargo publish": {Harm: publishes}, "twine": {Harm: publishes},
		"docker push": {Harm: publishes}, "docker image push": {Harm: publishes}, "docker compose push": {Harm: publishes}, "docker manifest push": {Harm: publishes}, "podman push": {Harm: publishes}, "gh release": {Harm: publishes}, "gh pr merge": {Harm: publishes}, "pnpm publish": {Harm: publishes},
		"yarn publish": {Harm: publishes}, "gem push": {Harm: publishes},
		"gh repo edit": {Harm: changesSystems}, "gh repo archive": {Harm: changesSystems}, "gh repo rename": {Harm: changesSystems}, "gh repo deploy-key": {Harm: changesSystems},
		"gh secret set": {Harm: changesSystems}, "gh ssh-key add": {Harm: changesSystems}, "gh gpg-key add": {Harm: changesSystems}, "gh workflow run": {Harm: changesSystems},
		"git reset": {Harm: discardsChanges}, "git clean": {Harm: discardsChanges}, "git restore": {Harm: discardsChanges},
		"git checkout": {Harm: discardsChanges}, "git stash drop": {Harm: throwsAwayStashed}, "git stash clear": {Harm: throwsAwayStashed},
		"git update-ref": {Harm: discardsChanges}, "git filter-branch": {Harm: discardsChanges}, "git rebase": {Harm: discardsChanges},
		"git merge": {Harm: changesRepository}, "git stash": {Harm: changesRepository}, "git switch": {Harm: changesRepository},
		"git config": {Harm: changesSettings}, "defaults": {Harm: changesSettings}, "sysctl": {Harm: changesSettings}, "crontab": {Harm: changesSettings},
		"systemctl": {Harm: changesSettings}, "launchctl": {Harm: changesSettings}, "at": {Harm: changesSettings}, "batch": {Harm: changesSettings},
		"visudo": {Harm: changesSettings}, "usermod": {Harm: changesSettings}, "useradd": {Harm: changesSettings}, "passwd": {Harm: changesSettings},
		"kill": {Harm: stopsProcesses}, "pkill": {Harm: stopsProcesses}, "killall": {Harm: stopsProcesses},
		"shutdown": {Harm: stopsMachine}, "reboot": {Harm: stopsMachine}, "halt": {Harm: stopsMachine}, "poweroff": {Harm: stopsMachine},
		"apt": {Harm: installs}, "apt-get": {Harm: installs}, "brew": {Harm: installs}, "dnf": {Harm: installs}, "yum": {Harm: installs},
		"pacman": {Harm: installs}, "apk": {Harm: installs}, "snap": {Harm: installs}, "pip install": {Harm: installs}, "pip3 install": {Harm: installs},
		"npm install": {Harm: installs}, "npm i": {Harm: installs}, "npm ci": {Harm: installs, runner: true}, "pnpm install": {Harm: installs},
		"pnpm add": {Harm: installs}, "yarn add": {Harm: installs}, "yarn install": {Harm: installs}, "bun add": {Harm: installs},
		"bun install": {Harm: installs}, "cargo install": {Harm: installs}, "go install": {Harm: installs}, "go get": {Harm: installs},
		"gem install": {Harm: installs}, "uv add": {Harm: installs}, "uv pip": {Harm: installs}, "poetry add": {Harm: installs},
		"composer require": {Harm: installs}, "pipx": {Harm: installs, runsAny: true}, "npx": {Harm: installs, Wraps: true},
		"bunx": {Harm: installs, runsAny: true}, "uvx": {Harm: installs, runsAny: true},
	}
}

func runners() map[string]*Command {
	return map[string]*Command{
		"./gradlew": {runner: true, target: true, manyTargets: true, chooser: "--tests"}, "./gradlew build": {runner: true}, "./gradlew test": {runner: true},
		"bazel": {Harm: runsProject}, "bd list": {runner: true}, "bd ready": {runner: true}, "bd search": {runner: true}, "bd show": {runner: true},
		"bd status": {runner: true}, "biome": {runner: true}, "bun": {Harm: runsProject, runsAny: true}, "bun run": {runner: true, target: true},
		"bun test": {runner: true}, "bundle": {Harm: runsProject, runsAny: true}, "bundle exec rspec": {runner: true}, "bundle exec rubocop": {runner: true},
		"cargo": {Harm: runsProject, runsAny: true}, "cargo build": {runner: true}, "cargo check": {runner: true}, "cargo clippy": {runner: true},
		"cargo doc": {runner: true}, "cargo fmt": {runner: true}, "cargo test": {runner: true}, "cmake": {Harm: runsProject, runsAny: true},
		"cmake --build": {runner: true}, "composer test": {runner: true}, "ctest": {runner: true}, "dart": {Harm: runsProject}, "dart analyze": {runner: true},
		"dart format": {runner: true}, "dart run build_runner": {runner: true}, "dart test": {runner: true}, "dotnet": {Harm: runsProject, runsAny: true},
		"dotnet build": {runner: true}, "dotnet test": {runner: true}, "eslint": {Harm: runsProject, runner: true}, "flutter": {Harm: runsProject},
		"flutter analyze": {runner: true}, "flutter build": {runner: true}, "flutter test": {runner: true}, "go build": {Harm: runsProject, runner: true},
		"go doc": {runner: true}, "go generate": {Harm: runsProject}, "go list": {runner: true}, "go run": {Harm: runsProject},
		"go test": {Harm: runsProject, runner: true}, "go vet": {Harm: runsProject, runner: true}, "gofmt": {runner: true},
		"goimports": {runner: true}, "golangci-lint": {Harm: runsProject}, "golangci-lint run": {runner: true},
		"gradle": {Harm: runsProject, manyTargets: true, chooser: "--tests", runsAny: true}, "gradle build": {runner: true}, "gradle test": {runner: true},
		"jest": {Harm: runsProject, runner: true}, "just": {Harm: runsProject, runner: true, target: true, manyTargets: true},
		"make": {Harm: runsProject, runner: true, target: true, manyTargets: true, runsAny: true}, "mix": {Harm: runsProject}, "mix test": {runner: true},
		"mvn": {Harm: runsProject, manyTargets: true, chooser: "-pl", runsAny: true}, "mvn compile": {runner: true}, "mvn test": {runner: true},
		"mypy": {Harm: runsProject, runner: true}, "ninja": {Harm: runsProject, runsAny: true}, "nox": {Harm: runsProject},
		"npm run": {Harm: runsProject, runner: true, target: true}, "npm start": {Harm: runsProject}, "npm test": {Harm: runsProject, runner: true},
		"npx biome": {runner: true}, "npx eslint": {runner: true}, "npx jest": {runner: true}, "npx prettier": {runner: true}, "npx tsc": {runner: true},
		"npx vitest": {runner: true}, "phpunit": {runner: true}, "pnpm": {Harm: runsProject, runsAny: true}, "pnpm build": {runner: true},
		"pnpm exec tsc": {runner: true}, "pnpm lint": {runner: true}, "pnpm run": {runner: true, target: true}, "pnpm test": {runner: true},
		"poetry run pytest": {runner: true}, "prettier": {runner: true}, "pytest": {Harm: runsProject, runner: true}, "python -m pytest": {runner: true},
		"python3 -m py_compile": {runner: true}, "python3 -m pytest": {runner: true},
		"rake": {Harm: runsProject, runner: true, target: true, manyTargets: true, runsAny: true}, "ruff": {Harm: runsProject, runner: true},
		"staticcheck": {runner: true}, "swift": {Harm: runsProject, runsAny: true}, "swift build": {runner: true},
		"swift test": {runner: true}, "swiftlint": {runner: true}, "task": {Harm: runsProject, runner: true, target: true, manyTargets: true},
		"tox": {Harm: runsProject, runner: true}, "tsc": {Harm: runsProject, runner: true}, "uv run pytest": {runner: true},
		"vitest": {Harm: runsProject, runner: true}, "xcodebuild": {runner: true, target: true}, "yarn": {Harm: runsProject, runsAny: true},
		"yarn build": {runner: true}, "yarn lint": {runner: true}, "yarn run": {runner: true, target: true}, "yarn test": {runner: true},
	}
}

// hazardous returns programs that run code, control systems or show secrets.
func hazardous() map[string]*Command {
	return map[string]*Command{
		"eval": {Harm: runsInlineCode, Interprets: true}, "sh": {Harm: runsInlineCode, Interprets: true}, "bash": {Harm: runsInlineCode, Interprets: true},
		"zsh": {Harm: runsInlineCode, Interprets: true}, "dash": {Harm: runsInlineCode, Interprets: true}, "fish": {Harm: runsInlineCode, Interprets: true},
		"ksh": {Harm: runsInlineCode, Interprets: true}, "source": {Harm: runsInlineCode}, ".": {Harm: runsInlineCode},
		"python": {Harm: runsProgram, inline: "-c"}, "python3": {Harm: runsProgram, inline: "-c"}, "node": {Harm: runsProgram, inline: "-e"},
		"deno": {Harm: runsProgram, inline: "eval"}, "ruby": {Harm: runsProgram, inline: "-e"}, "perl": {Harm: runsProgram, inline: "-e"},
		"php": {Harm: runsProgram, inline: "-r"}, "lua": {Harm: runsProgram, inline: "-e"}, "osascript": {Harm: runsProgram, inline: "-e"},
		"docker": {Harm: controlsContainers, runsAny: true}, "podman": {Harm: controlsContainers, runsAny: true}, "nerdctl": {Harm: controlsContainers, runsAny: true}, "docker-compose": {Harm: controlsContainers},
		"colima":  {Harm: controlsContainers},
		"kubectl": {Harm: changesSystems, runsAny: true}, "helm": {Harm: changesSystems}, "terraform": {Harm: changesSystems}, "tofu": {Harm: changesSystems},
		"pulumi": {Harm: changesSystems}, "aws": {Harm: changesSystems}, "gcloud": {Harm: changesSystems}, "az": {Harm: changesSystems},
		"heroku": {Harm: changesSystems}, "fly": {Harm: changesSystems}, "flyctl": {Harm: changesSystems}, "eb": {Harm: changesSystems}, "railway": {Harm: changesSystems},
		"firebase": {Harm: changesSystems}, "doctl": {Harm: changesSystems}, "gsutil": {Harm: changesSystems}, "rclone": {Harm: changesSystems, runsAny: true}, "vercel": {Harm: changesSystems}, "netlify": {Harm: changesSystems},
		"wrangler": {Harm: changesSystems}, "psql": {Harm: changesSystems}, "mysql": {Harm: changesSystems}, "mongo": {Harm: changesSystems},
		"mongosh": {Harm: changesSystems}, "redis-cli": {Harm: changesSystems}, "sqlite3": {Harm: changesSystems},
		"printenv": {Harm: showsSecrets}, "env": {Harm: showsSecrets, Wraps: true, Interprets: true}, "set": {Harm: showsSecrets},
		"security": {Harm: showsSecrets}, "op": {Harm: showsSecrets}, "pass": {Harm: showsSecrets}, "vault": {Harm: showsSecrets}, "gpg": {Harm: showsSecrets},
		"git credential": {Harm: showsSecrets},
	}
}

// wrappers returns commands that run another command, and programs that may run any program.
func wrappers() map[string]*Command {
	return map[string]*Command{
		"nohup": {Wraps: true}, "nice": {Wraps: true}, "ionice": {Wraps: true}, "time": {Wraps: true}, "timeout": {Wraps: true},
		"xargs": {Wraps: true, Interprets: true}, "builtin": {Wraps: true}, "exec": {Wraps: true}, "stdbuf": {Wraps: true}, "setsid": {Wraps: true},
		"chroot": {Wraps: true}, "unshare": {Wraps: true}, "watch": {Wraps: true, Interprets: true}, "parallel": {Wraps: true, Interprets: true},
		"busybox": {Wraps: true}, "toybox": {Wraps: true}, "script": {Wraps: true, Interprets: true}, "strace": {Wraps: true}, "ltrace": {Wraps: true},
		"flock": {Wraps: true}, "caffeinate": {Wraps: true}, "noglob": {Wraps: true}, "nocorrect": {Wraps: true}, "then": {Wraps: true}, "do": {Wraps: true},
		"gtimeout": {Wraps: true}, "chronic": {Wraps: true}, "dotenv": {Wraps: true}, "direnv": {Wraps: true}, "systemd-run": {Wraps: true},
		"nod": {Wraps: true}, "ed": {runsAny: true}, "emacs": {runsAny: true}, "erl": {runsAny: true}, "expect": {runsAny: true}, "fd": {runsAny: true},
		"gawk": {runsAny: true}, "gdb": {runsAny: true}, "gem": {runsAny: true}, "go": {runsAny: true}, "iex": {runsAny: true},
		"java": {runsAny: true}, "less": {runsAny: true}, "lldb": {runsAny: true}, "man": {runsAny: true}, "mawk": {runsAny: true}, "more": {runsAny: true},
		"nawk": {runsAny: true}, "npm": {runsAny: true}, "nvim": {runsAny: true}, "pip": {runsAny: true}, "screen": {runsAny: true},
		"tclsh": {runsAny: true}, "tmux": {runsAny: true}, "uv": {runsAny: true}, "vi": {runsAny: true}, "view": {runsAny: true}, "vim": {runsAny: true},
	}
}

func grepCommand() *Command {
	return &Command{level: LevelReaders, short: "abcEFGhHiIlLnoPqrRsTUvVwxyzZ", value: "ABCem", digits: true,
		operands: unlimited, Loose: true, script: "e", getopt: true, check: checkGrep, follows: "R dereference-recursive",
		long: "extended-regexp fixed-strings basic-regexp perl-regexp regexp: ignore-case no-ignore-case word-regexp line-regexp null-data no-messages invert-match max-count: byte-offset line-number line-buffered with-filename no-filename label: only-matching quiet silent binary-files: text recursive dereference-recursive include: exclude: exclude-dir: files-without-match files-with-matches count initial-tab null before-context: after-context: context: color= colour= unix-byte-offsets"}
}

func rgCommand() *Command {
	return &Command{level: LevelReaders, short: "abcFHiIlLnNopPqsSUvVwx0.u", value: "ABCeEgjmMrtTd", operands: unlimited, Loose: true, script: "e", check: checkRg, follows: "L follow", runsAny: true,
		long: "after-context: before-context: context: regexp: fixed-strings ignore-case case-sensitive smart-case line-number no-line-number column no-column with-filename no-filename files files-with-matches files-without-match count count-matches include-zero invert-match word-regexp line-regexp only-matching multiline multiline-dotall pcre2 quiet glob: iglob: type: type-not: type-list max-count: max-columns: max-columns-preview max-depth: max-filesize: threads: replace: trim no-heading heading pretty color: colors: sort: sortr: stats json vimgrep null no-messages no-config text hidden no-hidden no-ignore no-ignore-vcs no-ignore-parent follow one-file-system passthru passthrough engine: encoding: context-separator: field-match-separator: glob-case-insensitive crlf byte-offset no-unicode unrestricted"}
}

// Flags of git's diff commands that only change the form of the output. These flags are missing on
// purpose: --output writes, --ext-diff and --textconv run programs, --no-index reads outside the
// repository, -O reads a file.
const (
	diffLong = "patch no-patch raw patch-with-raw patch-with-stat stat= numstat shortstat dirstat= summary name-only name-status unified= indent-heuristic no-indent-heuristic minimal patience histogram diff-algorithm: anchored: compact-summary cumulative " +
		"color= no-color color-moved= no-color-moved color-moved-ws: word-diff= word-diff-regex: color-words= no-renames rename-empty no-rename-empty check full-index binary abbrev= break-rewrites= find-renames= find-copies= find-copies-harder irreversible-delete diff-filter: " +
		"pickaxe-all pickaxe-regex relative= no-relative text ignore-cr-at-eol ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines: inter-hunk-context: function-context exit-code quiet no-ext-diff no-textconv ignore-submodules= " +
		"src-prefix: dst-prefix: no-prefix default-prefix line-prefix: output-indicator-new: output-indicator-old: output-indicator-context: ita-invisible-in-index merge-base cached staged base ours theirs combined-all-paths cc"
	diffShort = "puswbaRWzcm"
	diffTail  = "MCBXDU"
	logLong   = diffLong + " follow no-follow decorate= no-decorate decorate-refs: decorate-refs-exclude: source mailmap no-mailmap use-mailmap full-diff log-size max-count: skip: since: after: until: before: author: committer: grep: all-match invert-grep regexp-ignore-case basic-regexp extended-regexp fixed-strings perl-regexp " +
		"merges no-merges min-parents= max-parents= first-parent all branches= tags= remotes= glob: exclude: ignore-missing cherry-mark cherry-pick left-only right-only cherry walk-reflogs merge boundary simplify-by-decoration full-history dense sparse simplify-merges ancestry-path= date-order author-date-order topo-order reverse " +
		"no-walk= do-walk pretty= format= abbrev-commit no-abbrev-commit oneline encoding: expand-tabs= no-expand-tabs notes= no-notes relative-date date: parents children left-right graph no-graph show-linear-break= diff-merges: no-diff-merges dd not remove-empty"
	logShort = diffShort + "gEFPirt"
	logValue = "lSGIn"
)

// gitLog returns an entry for git log and git show, which take the same flags.
func gitLog() *Command {
	return &Command{level: LevelDesign, short: logShort, value: logValue + "L", tail: diffTail, digits: true, operands: unlimited, long: logLong, check: gitFormat, Differ: true}
}

func gitReflog() *Command {
	c := gitLog()
	c.level = LevelReaders
	return c
}

func ghRead() *Command {
	return &Command{level: levelApproved, operands: 1, Text: true, short: "c", value: "LqRt", long: "limit: state: json: jq: template: repo: comments search: label: author: assignee: branch: status: workflow: log log-failed job: patch name-only required exit-status compact head: base: milestone: sort: order: match: created: updated: closed: merged: owner: event: commit:", check: checkGh, runner: true}
}
