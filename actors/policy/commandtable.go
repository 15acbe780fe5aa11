package policy

// newCommandTable lists every command that the package knows, one entry each.
//
// To let a preset allow a command that only reads, add an entry with its level and the
// flags that keep it reading. Leave out flags that write (-o), run a program (--pre,
// --compress-program, -l of diff), read a list of files from a file (--files0-from), or
// make it follow files that nod cannot see.
func newCommandTable() commandTable {
	return compileCommands(commandTable{
		// preset design: list and print files
		"ls":    {level: levelDesign, short: "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1", value: "ITw", operands: unlimited, anyFlag: true, lists: true, long: "all almost-all author escape block-size: ignore-backups color= directory dired classify= file-type format: full-time group-directories-first no-group human-readable si dereference dereference-command-line hide: hyperlink= indicator-style: inode ignore: kibibytes numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style: reverse recursive size sort: time: time-style: tabsize: width: context zero", follows: "L dereference"},
		"cat":   {level: levelDesign, short: "AbeEnstTuv", operands: unlimited, anyFlag: true, long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting"},
		"head":  {level: levelDesign, short: "qvz", value: "nc", digits: true, operands: unlimited, anyFlag: true, long: "bytes: lines: quiet silent verbose zero-terminated"},
		"tail":  {level: levelDesign, short: "fFqrvz", value: "ncbs", digits: true, operands: unlimited, anyFlag: true, long: "bytes: lines: follow= retry quiet silent verbose sleep-interval: zero-terminated"},
		"pwd":   {level: levelDesign, short: "LP", long: "logical physical"},
		"echo":  {level: levelDesign, operands: unlimited, text: true, raw: true},
		"which": {level: levelDesign, short: "a", operands: unlimited, text: true, long: "all"},

		// shell builtins without an effect
		"true":    {level: levelReaders},
		"false":   {level: levelReaders},
		":":       {level: levelReaders, raw: true, text: true},
		"sleep":   {level: levelReaders, operands: 1, check: checkSleep},
		"type":    {level: levelReaders, short: "atpP", operands: unlimited, text: true},
		"command": {level: levelReaders, operands: unlimited, text: true, short: "vV", ordered: true, check: checkCommandV, wraps: true},
		"printf":  {level: levelReaders, operands: unlimited, text: true, check: checkPrintf},

		// text
		"wc":     {level: levelReaders, short: "lcwmL", operands: unlimited, long: "bytes chars lines words max-line-length total:"},
		"sort":   {level: levelReaders, short: "bdfgiMhnRrVcCmsuz", value: "kt", operands: unlimited, long: "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort reverse version-sort check= key: merge stable field-separator: unique zero-terminated", runsAny: true},
		"uniq":   {level: levelReaders, short: "cdDiuz", value: "fsw", operands: 1, ordered: true, long: "count repeated all-repeated= skip-fields: ignore-case skip-chars: unique check-chars: zero-terminated group="},
		"cut":    {level: levelReaders, short: "nsz", value: "bcdf", operands: unlimited, long: "bytes: characters: delimiter: fields: complement only-delimited output-delimiter: zero-terminated"},
		"nl":     {level: levelReaders, short: "p", value: "bdfhilnsvw", operands: unlimited, long: "body-numbering: section-delimiter: footer-numbering: header-numbering: line-increment: join-blank-lines: number-format: no-renumber number-separator: starting-line-number: number-width:"},
		"tr":     {level: levelReaders, short: "cCdst", operands: 2, text: true, long: "complement delete squeeze-repeats truncate-set1"},
		"rev":    {level: levelReaders, operands: unlimited},
		"tac":    {level: levelReaders, short: "br", value: "s", operands: unlimited, long: "before regex separator:"},
		"paste":  {level: levelReaders, short: "sz", value: "d", operands: unlimited, long: "delimiters: serial zero-terminated"},
		"fold":   {level: levelReaders, short: "bs", value: "w", operands: unlimited, long: "bytes spaces width:"},
		"expand": {level: levelReaders, short: "i", value: "t", operands: unlimited, long: "initial tabs:"},
		"column": {level: levelReaders, short: "tx", value: "cs", operands: unlimited},
		"comm":   {level: levelReaders, short: "123", operands: 2, long: "check-order nocheck-order output-delimiter: total zero-terminated"},
		"cmp":    {level: levelReaders, short: "bls", operands: 2, long: "print-bytes verbose quiet silent"},
		"diff":   {level: levelReaders, short: "abBcdeEiNpqrstTuwy", value: "CUWx", operands: 2, long: "normal brief report-identical-files context= unified= ed side-by-side width: left-column suppress-common-lines show-c-function recursive new-file ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines strip-trailing-cr text minimal color= no-dereference exclude:", check: checkDiff, follows: "r recursive"},
		"seq":    {level: levelReaders, short: "w", value: "s", operands: 3, text: true},
		"grep":   grepCommand(),
		"egrep":  grepCommand(),
		"fgrep":  grepCommand(),
		"rg":     rgCommand(),
		"sed":    {level: levelReaders, short: "nErsuz", value: "e", operands: unlimited, loose: true, script: "e", long: "quiet silent regexp-extended separate unbuffered null-data expression: posix sandbox", check: checkSed, runsAny: true},
		"awk":    {level: levelReaders, value: "F", operands: unlimited, loose: true, script: "-", ordered: true, check: checkAwk, runsAny: true},
		"jq":     {level: levelReaders, short: "rcnesSRjaCM", operands: unlimited, loose: true, script: "-", check: checkJq, long: "raw-output compact-output null-input exit-status slurp sort-keys raw-input join-output ascii-output color-output monochrome-output tab stream seq indent:"},

		// files
		"stat":      {level: levelReaders, short: "LtxsnFlqr", value: "cf", operands: unlimited, long: "dereference format: printf: terse file-system"},
		"file":      {level: levelReaders, short: "bhiLkNr", operands: unlimited, long: "brief mime mime-type mime-encoding dereference no-dereference no-pad raw keep-going"},
		"du":        {level: levelReaders, short: "abchHklLmsSx0", value: "dBIt", operands: unlimited, long: "all apparent-size block-size: bytes total dereference max-depth: human-readable inodes si summarize separate-dirs one-file-system threshold: exclude: time=", follows: "L dereference"},
		"df":        {level: levelReaders, short: "ahHiklPTm", value: "Bt", operands: unlimited, long: "all block-size: human-readable si inodes local output= portability total type: print-type"},
		"basename":  {level: levelReaders, short: "az", value: "s", operands: unlimited, text: true, long: "multiple suffix: zero"},
		"dirname":   {level: levelReaders, short: "z", operands: unlimited, text: true, long: "zero"},
		"realpath":  {level: levelReaders, short: "eLmPqsz", operands: unlimited, long: "canonicalize-existing canonicalize-missing logical physical quiet strip no-symlinks zero relative-to: relative-base:"},
		"readlink":  {level: levelReaders, short: "efmnqsvz", operands: unlimited, long: "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero"},
		"tree":      {level: levelReaders, short: "adfilxCAnsShpugDFQNtUrcvJX", value: "LPI", apart: true, operands: unlimited, long: "dirsfirst filesfirst noreport prune gitignore du si inodes filelimit: matchdirs ignore-case", follows: "l"},
		"md5sum":    {level: levelReaders, short: "bt", operands: unlimited},
		"sha1sum":   {level: levelReaders, short: "bt", operands: unlimited},
		"sha256sum": {level: levelReaders, short: "bt", operands: unlimited},
		"cksum":     {level: levelReaders, operands: unlimited},
		"shasum":    {level: levelReaders, short: "bt", value: "a", operands: unlimited, long: "algorithm: binary text"},
		"hexdump":   {level: levelReaders, short: "bcCdovx", value: "ns", operands: unlimited},
		"od":        {level: levelReaders, short: "abcdfiloxsvx", value: "AjNtwS", operands: unlimited, long: "address-radix: skip-bytes: read-bytes: format: output-duplicates width="},
		"strings":   {level: levelReaders, short: "a", value: "nt", operands: unlimited, long: "all bytes: radix:", check: checkStrings},

		// the machine
		"ps":       {level: levelReaders, short: "AefFjlw", value: "p", check: checkPs}, // not -u: ps -uxe shows environments if there is no user xe
		"date":     {level: levelReaders, short: "uR", value: "d", tail: "I", operands: 1, text: true, long: "date: utc universal iso-8601= rfc-3339: rfc-email", check: checkDate},
		"whoami":   {level: levelReaders},
		"id":       {level: levelReaders, short: "agGnruz", operands: 1, text: true},
		"uname":    {level: levelReaders, short: "amnprsvio", long: "all kernel-name nodename kernel-release kernel-version machine processor operating-system"},
		"arch":     {level: levelReaders, wraps: true},
		"nproc":    {level: levelReaders, long: "all"},
		"hostname": {level: levelReaders},
		"uptime":   {level: levelReaders, short: "ps"},
		"free":     {level: levelReaders, short: "bghkmtw"},
		"tty":      {level: levelReaders, short: "s"},

		// commands with a grammar of their own
		"cd":              {level: levelReaders, special: (*commandLine).changeDir},
		"test":            {level: levelReaders, special: (*commandLine).testCommand},
		"find":            {level: levelReaders, special: (*commandLine).findFiles, wraps: true},
		"git":             {level: levelDesign, special: (*commandLine).git, harm: changesRepository, runsAny: true},
		"rtk":             {level: levelReaders, special: (*commandLine).rtk, wraps: true},
		"workmux":         {level: levelReaders, special: (*commandLine).workmux},
		"workmux status":  {level: levelReaders, operands: unlimited, long: "json"},
		"workmux list":    {level: levelReaders, operands: unlimited, long: "json all"},
		"workmux capture": {level: levelReaders, operands: 1, value: "n", long: "lines:"},

		// git: the reading forms of its subcommands
		"git status":         {level: levelDesign, short: "sbvz", tail: "uM", operands: unlimited, long: "short branch show-stash porcelain= long verbose untracked-files= ignore-submodules= ignored= column= no-column ahead-behind no-ahead-behind renames no-renames find-renames= null"},
		"git log":            gitLog(),
		"git show":           gitLog(),
		"git diff":           {level: levelDesign, short: diffShort, value: "UlSGI", tail: diffTail, operands: unlimited, long: diffLong, check: gitDiff, differ: true},
		"git branch":         {level: levelDesign, text: true, short: "arvil", operands: unlimited, check: gitBranch, long: "all remotes verbose list show-current contains= no-contains= merged= no-merged= points-at: sort: format: color= no-color column= no-column abbrev= no-abbrev ignore-case omit-empty", harm: discardsChanges},
		"git shortlog":       {level: levelReaders, short: "nsec", tail: "w", digits: true, operands: unlimited, long: "numbered summary email committer since: after: until: before: author: no-merges merges all group: format:", check: gitFormat},
		"git reflog show":    gitReflog(),
		"git reflog":         {level: levelReaders, value: "n", digits: true, harm: discardsChanges},
		"git rev-parse":      {level: levelReaders, short: "q", operands: unlimited, long: "verify quiet short= abbrev-ref= symbolic symbolic-full-name show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository all branches= tags= remotes= show-superproject-working-tree"},
		"git ls-files":       {level: levelReaders, short: "cdmoistuvzk", value: "x", operands: unlimited, long: "cached deleted modified others ignored stage unmerged killed directory no-empty-directory eol error-unmatch full-name exclude: exclude-standard abbrev= deduplicate"},
		"git ls-tree":        {level: levelReaders, short: "drtlz", operands: unlimited, long: "long name-only name-status full-name full-tree abbrev= object-only"},
		"git blame":          {level: levelReaders, short: "bcefhklnpstw", value: "L", tail: "CM", operands: unlimited, long: "root show-stats porcelain line-porcelain show-name show-number show-email date: abbrev: color-lines color-by-age"},
		"git cat-file":       {level: levelReaders, short: "epts", operands: 2},
		"git describe":       {level: levelReaders, operands: unlimited, long: "all tags contains abbrev: candidates: exact-match long match: exclude: always first-parent dirty= broken="},
		"git merge-base":     {level: levelReaders, short: "a", operands: unlimited, long: "all octopus independent is-ancestor fork-point"},
		"git rev-list":       {level: levelReaders, value: "n", digits: true, operands: unlimited, long: "count all branches= tags= remotes= max-count: skip: since: after: until: before: author: no-merges merges first-parent left-right cherry-pick reverse topo-order date-order parents objects left-only right-only oneline abbrev-commit"},
		"git name-rev":       {level: levelReaders, operands: unlimited, long: "tags name-only always all"},
		"git for-each-ref":   {level: levelReaders, operands: unlimited, long: "count: sort: format: points-at: merged= no-merged= contains= no-contains=", check: gitFormat},
		"git grep":           {level: levelReaders, short: "aiIwvhHEGFPnlLzocpWq", value: "eABCm", operands: unlimited, loose: true, script: "e", long: "text ignore-case word-regexp invert-match full-name extended-regexp basic-regexp perl-regexp fixed-strings line-number column files-with-matches name-only files-without-match null only-matching count color= no-color break heading show-function after-context: before-context: context: function-context max-count: max-depth: cached and or not all-match quiet"},
		"git remote":         {level: levelReaders, short: "v", long: "verbose"},
		"git remote get-url": {level: levelReaders, operands: 1, long: "all push"},
		"git tag":            {level: levelReaders, text: true, short: "l", tail: "n", operands: unlimited, long: "list sort: format: contains= no-contains= merged= no-merged= points-at: column= no-column color=", check: gitTag, harm: changesRepository},
		"git stash list":     {level: levelReaders, digits: true, long: "oneline stat"},
		"git stash show":     {level: levelReaders, short: "pu", operands: 1, long: "stat patch name-only name-status"},
		"git worktree list":  {level: levelReaders, short: "vz", long: "porcelain verbose"},
		"git check-ignore":   {level: levelReaders, short: "qvnz", operands: unlimited, long: "quiet verbose non-matching no-index"},
		"git count-objects":  {level: levelReaders, short: "vH", long: "verbose human-readable"},

		// commands that no preset allows, with the flags that a prefix answer leaves open
		"git add":             {level: levelApproved, short: "Aunv", operands: unlimited, long: "all update dry-run verbose intent-to-add", harm: changesRepository, runner: true},
		"git commit":          {level: levelApproved, short: "aqvs", value: "m", operands: unlimited, long: "all quiet verbose signoff message: amend no-edit", harm: changesRepository, runner: true},
		"git fetch":           {level: levelApproved, short: "pqvat", operands: unlimited, long: "all prune tags no-tags quiet verbose depth:", check: checkRemote, harm: usesNetwork, runner: true},
		"npm view":            {level: levelApproved, operands: unlimited, text: true, long: "json", check: checkRemote, harm: usesNetwork, runner: true},
		"npm ls":              {level: levelApproved, operands: unlimited, text: true, short: "a", long: "json all depth:", runner: true},
		"docker ps":           {level: levelApproved, short: "aqln", long: "all no-trunc quiet latest size filter:", runner: true},
		"docker logs":         {level: levelApproved, short: "ft", value: "n", operands: 1, long: "follow timestamps tail: since: until:", runner: true},
		"docker compose ps":   {level: levelApproved, short: "aq", operands: unlimited, long: "all quiet services", runner: true},
		"docker compose logs": {level: levelApproved, short: "ft", value: "n", operands: unlimited, long: "follow timestamps tail: since: until: no-color", runner: true},
		"tmux list-sessions":  {level: levelApproved, runner: true},
		"tmux capture-pane":   {level: levelApproved, short: "pJe", value: "tSE", runner: true},
		"gh pr view":          ghRead(),
		"gh pr list":          ghRead(),
		"gh pr checks":        ghRead(),
		"gh pr diff":          ghRead(),
		"gh pr status":        ghRead(),
		"gh issue view":       ghRead(),
		"gh issue list":       ghRead(),
		"gh run view":         ghRead(),
		"gh run list":         ghRead(),
		"gh repo view":        ghRead(),

		// commands that do harm, by harm
		"rm": {harm: deletes}, "rmdir": {harm: deletes}, "unlink": {harm: deletes}, "git rm": {harm: deletes}, "trash": {harm: deletes},
		"shred": {harm: destroys}, "dd": {harm: destroys}, "wipefs": {harm: destroys}, "truncate": {harm: destroys}, "srm": {harm: destroys},
		"mkfs": {harm: writesDisk}, "fdisk": {harm: writesDisk}, "parted": {harm: writesDisk}, "diskutil": {harm: writesDisk}, "mount": {harm: writesDisk},
		"umount": {harm: writesDisk},
		"cp":     {harm: writesFiles}, "mv": {harm: writesFiles}, "mkdir": {harm: writesFiles}, "touch": {harm: writesFiles}, "tee": {harm: writesFiles},
		"ln": {harm: writesFiles}, "install": {harm: writesFiles}, "patch": {harm: writesFiles}, "unzip": {harm: writesFiles},
		"tar": {harm: writesFiles, runsAny: true}, "split": {harm: writesFiles, runsAny: true}, "rsync": {harm: writesFiles, runsAny: true},
		"cpio": {harm: writesFiles}, "7z": {harm: writesFiles}, "zip": {harm: writesFiles, runsAny: true},
		"chmod": {harm: changesAccess}, "chown": {harm: changesAccess}, "chgrp": {harm: changesAccess}, "setfacl": {harm: changesAccess},
		"chattr": {harm: changesAccess}, "umask": {harm: changesAccess},
		"sudo": {harm: runsAsRoot, wraps: true}, "doas": {harm: runsAsRoot, wraps: true}, "su": {harm: runsAsRoot, wraps: true, interprets: true},
		"runuser": {harm: runsAsRoot, wraps: true}, "pkexec": {harm: runsAsRoot},
		"curl": {harm: usesNetwork}, "wget": {harm: usesNetwork}, "nc": {harm: usesNetwork, runsAny: true}, "ncat": {harm: usesNetwork, runsAny: true},
		"telnet": {harm: usesNetwork}, "ftp": {harm: usesNetwork}, "sftp": {harm: usesNetwork, runsAny: true}, "ping": {harm: usesNetwork},
		"dig": {harm: usesNetwork}, "nslookup": {harm: usesNetwork}, "host": {harm: usesNetwork}, "git pull": {harm: usesNetwork},
		"git clone": {harm: usesNetwork}, "git ls-remote": {harm: usesNetwork}, "gh": {harm: usesNetwork}, "glab": {harm: usesNetwork},
		"http": {harm: usesNetwork}, "openssl": {harm: usesNetwork},
		"ssh": {harm: runsRemotely, interprets: true}, "scp": {harm: runsRemotely, runsAny: true}, "mosh": {harm: runsRemotely},
		"ansible": {harm: runsRemotely}, "ansible-playbook": {harm: runsRemotely},
		"git push": {harm: publishes}, "npm publish": {harm: publishes}, "cargo publish": {harm: publishes}, "twine": {harm: publishes},
		"docker push": {harm: publishes}, "gh release": {harm: publishes}, "gh pr merge": {harm: publishes}, "pnpm publish": {harm: publishes},
		"yarn publish": {harm: publishes}, "gem push": {harm: publishes},
		"git reset": {harm: discardsChanges}, "git clean": {harm: discardsChanges}, "git restore": {harm: discardsChanges},
		"git checkout": {harm: discardsChanges}, "git stash drop": {harm: discardsChanges}, "git stash clear": {harm: discardsChanges},
		"git update-ref": {harm: discardsChanges}, "git filter-branch": {harm: discardsChanges}, "git rebase": {harm: discardsChanges},
		"git merge": {harm: changesRepository}, "git stash": {harm: changesRepository}, "git switch": {harm: changesRepository},
		"git config": {harm: changesSettings}, "defaults": {harm: changesSettings}, "sysctl": {harm: changesSettings}, "crontab": {harm: changesSettings},
		"systemctl": {harm: changesSettings}, "launchctl": {harm: changesSettings}, "at": {harm: changesSettings}, "batch": {harm: changesSettings},
		"visudo": {harm: changesSettings}, "usermod": {harm: changesSettings}, "useradd": {harm: changesSettings}, "passwd": {harm: changesSettings},
		"kill": {harm: stopsProcesses}, "pkill": {harm: stopsProcesses}, "killall": {harm: stopsProcesses},
		"shutdown": {harm: stopsMachine}, "reboot": {harm: stopsMachine}, "halt": {harm: stopsMachine}, "poweroff": {harm: stopsMachine},
		"apt": {harm: installs}, "apt-get": {harm: installs}, "brew": {harm: installs}, "dnf": {harm: installs}, "yum": {harm: installs},
		"pacman": {harm: installs}, "apk": {harm: installs}, "snap": {harm: installs}, "pip install": {harm: installs}, "pip3 install": {harm: installs},
		"npm install": {harm: installs}, "npm i": {harm: installs}, "npm ci": {harm: installs, runner: true}, "pnpm install": {harm: installs},
		"pnpm add": {harm: installs}, "yarn add": {harm: installs}, "yarn install": {harm: installs}, "bun add": {harm: installs},
		"bun install": {harm: installs}, "cargo install": {harm: installs}, "go install": {harm: installs}, "go get": {harm: installs},
		"gem install": {harm: installs}, "uv add": {harm: installs}, "uv pip": {harm: installs}, "poetry add": {harm: installs},
		"composer require": {harm: installs}, "pipx": {harm: installs, runsAny: true}, "npx": {harm: installs, wraps: true},
		"bunx": {harm: installs, runsAny: true}, "uvx": {harm: installs, runsAny: true},

		// build, test and check runners
		"./gradlew": {runner: true, target: true, manyTargets: true, chooser: "--tests"}, "./gradlew build": {runner: true}, "./gradlew test": {runner: true},
		"bazel": {harm: runsProject}, "bd list": {runner: true}, "bd ready": {runner: true}, "bd search": {runner: true}, "bd show": {runner: true},
		"bd status": {runner: true}, "biome": {runner: true}, "bun": {harm: runsProject, runsAny: true}, "bun run": {runner: true, target: true},
		"bun test": {runner: true}, "bundle": {harm: runsProject, runsAny: true}, "bundle exec rspec": {runner: true}, "bundle exec rubocop": {runner: true},
		"cargo": {harm: runsProject, runsAny: true}, "cargo build": {runner: true}, "cargo check": {runner: true}, "cargo clippy": {runner: true},
		"cargo doc": {runner: true}, "cargo fmt": {runner: true}, "cargo test": {runner: true}, "cmake": {harm: runsProject, runsAny: true},
		"cmake --build": {runner: true}, "composer test": {runner: true}, "ctest": {runner: true}, "dart": {harm: runsProject}, "dart analyze": {runner: true},
		"dart format": {runner: true}, "dart run build_runner": {runner: true}, "dart test": {runner: true}, "dotnet": {harm: runsProject, runsAny: true},
		"dotnet build": {runner: true}, "dotnet test": {runner: true}, "eslint": {harm: runsProject, runner: true}, "flutter": {harm: runsProject},
		"flutter analyze": {runner: true}, "flutter build": {runner: true}, "flutter test": {runner: true}, "go build": {harm: runsProject, runner: true},
		"go doc": {runner: true}, "go generate": {harm: runsProject}, "go list": {runner: true}, "go run": {harm: runsProject},
		"go test": {harm: runsProject, runner: true}, "go vet": {harm: runsProject, runner: true}, "gofmt": {runner: true, oneDash: true},
		"goimports": {runner: true, oneDash: true}, "golangci-lint": {harm: runsProject}, "golangci-lint run": {runner: true},
		"gradle": {harm: runsProject, manyTargets: true, chooser: "--tests", runsAny: true}, "gradle build": {runner: true}, "gradle test": {runner: true},
		"jest": {harm: runsProject, runner: true}, "just": {harm: runsProject, runner: true, target: true, manyTargets: true},
		"make": {harm: runsProject, runner: true, target: true, manyTargets: true, runsAny: true}, "mix": {harm: runsProject}, "mix test": {runner: true},
		"mvn": {harm: runsProject, manyTargets: true, chooser: "-pl", oneDash: true, runsAny: true}, "mvn compile": {runner: true}, "mvn test": {runner: true},
		"mypy": {harm: runsProject, runner: true}, "ninja": {harm: runsProject, runsAny: true}, "nox": {harm: runsProject},
		"npm run": {harm: runsProject, runner: true, target: true}, "npm start": {harm: runsProject}, "npm test": {harm: runsProject, runner: true},
		"npx biome": {runner: true}, "npx eslint": {runner: true}, "npx jest": {runner: true}, "npx prettier": {runner: true}, "npx tsc": {runner: true},
		"npx vitest": {runner: true}, "phpunit": {runner: true}, "pnpm": {harm: runsProject, runsAny: true}, "pnpm build": {runner: true},
		"pnpm exec tsc": {runner: true}, "pnpm lint": {runner: true}, "pnpm run": {runner: true, target: true}, "pnpm test": {runner: true},
		"poetry run pytest": {runner: true}, "prettier": {runner: true}, "pytest": {harm: runsProject, runner: true}, "python -m pytest": {runner: true},
		"python3 -m py_compile": {runner: true}, "python3 -m pytest": {runner: true},
		"rake": {harm: runsProject, runner: true, target: true, manyTargets: true, runsAny: true}, "ruff": {harm: runsProject, runner: true},
		"staticcheck": {runner: true, oneDash: true}, "swift": {harm: runsProject, oneDash: true, runsAny: true}, "swift build": {runner: true},
		"swift test": {runner: true}, "swiftlint": {runner: true}, "task": {harm: runsProject, runner: true, target: true, manyTargets: true},
		"tox": {harm: runsProject, runner: true}, "tsc": {harm: runsProject, runner: true}, "uv run pytest": {runner: true},
		"vitest": {harm: runsProject, runner: true}, "xcodebuild": {runner: true, target: true, oneDash: true}, "yarn": {harm: runsProject, runsAny: true},
		"yarn build": {runner: true}, "yarn lint": {runner: true}, "yarn run": {runner: true, target: true}, "yarn test": {runner: true},

		// the same: programs that run code, control systems or show secrets
		"eval": {harm: runsInlineCode, interprets: true}, "sh": {harm: runsInlineCode, interprets: true}, "bash": {harm: runsInlineCode, interprets: true},
		"zsh": {harm: runsInlineCode, interprets: true}, "dash": {harm: runsInlineCode, interprets: true}, "fish": {harm: runsInlineCode, interprets: true},
		"ksh": {harm: runsInlineCode, interprets: true}, "source": {harm: runsInlineCode}, ".": {harm: runsInlineCode},
		"python": {harm: runsProgram, inline: "-c"}, "python3": {harm: runsProgram, inline: "-c"}, "node": {harm: runsProgram, inline: "-e"},
		"deno": {harm: runsProgram, inline: "eval"}, "ruby": {harm: runsProgram, inline: "-e"}, "perl": {harm: runsProgram, inline: "-e"},
		"php": {harm: runsProgram, inline: "-r"}, "lua": {harm: runsProgram, inline: "-e"}, "osascript": {harm: runsProgram, inline: "-e"},
		"docker": {harm: controlsContainers, runsAny: true}, "podman": {harm: controlsContainers, runsAny: true}, "docker-compose": {harm: controlsContainers},
		"colima":  {harm: controlsContainers},
		"kubectl": {harm: changesSystems, runsAny: true}, "helm": {harm: changesSystems}, "terraform": {harm: changesSystems}, "tofu": {harm: changesSystems},
		"pulumi": {harm: changesSystems}, "aws": {harm: changesSystems}, "gcloud": {harm: changesSystems}, "az": {harm: changesSystems},
		"heroku": {harm: changesSystems}, "fly": {harm: changesSystems}, "vercel": {harm: changesSystems}, "netlify": {harm: changesSystems},
		"wrangler": {harm: changesSystems}, "psql": {harm: changesSystems}, "mysql": {harm: changesSystems}, "mongo": {harm: changesSystems},
		"mongosh": {harm: changesSystems}, "redis-cli": {harm: changesSystems}, "sqlite3": {harm: changesSystems},
		"printenv": {harm: showsSecrets}, "env": {harm: showsSecrets, wraps: true, interprets: true}, "set": {harm: showsSecrets},
		"security": {harm: showsSecrets}, "op": {harm: showsSecrets}, "pass": {harm: showsSecrets}, "vault": {harm: showsSecrets}, "gpg": {harm: showsSecrets},
		"git credential": {harm: showsSecrets},

		// wrappers, and programs that can run any other program
		"nohup": {wraps: true}, "nice": {wraps: true}, "ionice": {wraps: true}, "time": {wraps: true}, "timeout": {wraps: true},
		"xargs": {wraps: true, interprets: true}, "builtin": {wraps: true}, "exec": {wraps: true}, "stdbuf": {wraps: true}, "setsid": {wraps: true},
		"chroot": {wraps: true}, "unshare": {wraps: true}, "watch": {wraps: true, interprets: true}, "parallel": {wraps: true, interprets: true},
		"busybox": {wraps: true}, "toybox": {wraps: true}, "script": {wraps: true, interprets: true}, "strace": {wraps: true}, "ltrace": {wraps: true},
		"flock": {wraps: true}, "caffeinate": {wraps: true}, "noglob": {wraps: true}, "nocorrect": {wraps: true}, "then": {wraps: true}, "do": {wraps: true},
		"gtimeout": {wraps: true}, "chronic": {wraps: true}, "dotenv": {wraps: true}, "direnv": {wraps: true}, "systemd-run": {wraps: true},
		"nod": {wraps: true}, "ed": {runsAny: true}, "emacs": {runsAny: true}, "erl": {runsAny: true}, "expect": {runsAny: true}, "fd": {runsAny: true},
		"gawk": {runsAny: true}, "gdb": {runsAny: true}, "gem": {runsAny: true}, "go": {oneDash: true, runsAny: true}, "iex": {runsAny: true},
		"java": {runsAny: true}, "less": {runsAny: true}, "lldb": {runsAny: true}, "man": {runsAny: true}, "mawk": {runsAny: true}, "more": {runsAny: true},
		"nawk": {runsAny: true}, "npm": {runsAny: true}, "nvim": {runsAny: true}, "pip": {runsAny: true}, "screen": {runsAny: true}, "socat": {runsAny: true},
		"tclsh": {runsAny: true}, "tmux": {runsAny: true}, "uv": {runsAny: true}, "vi": {runsAny: true}, "view": {runsAny: true}, "vim": {runsAny: true},
	})
}

func grepCommand() *command {
	return &command{level: levelReaders, short: "abcEFGhHiIlLnoPqrRsTUvVwxyzZ", value: "ABCem", digits: true,
		operands: unlimited, loose: true, script: "e", check: checkGrep, follows: "R dereference-recursive",
		long: "extended-regexp fixed-strings basic-regexp perl-regexp regexp: ignore-case no-ignore-case word-regexp line-regexp null-data no-messages invert-match max-count: byte-offset line-number line-buffered with-filename no-filename label: only-matching quiet silent binary-files: text recursive dereference-recursive include: exclude: exclude-dir: files-without-match files-with-matches count initial-tab null before-context: after-context: context: color= colour= unix-byte-offsets"}
}

func rgCommand() *command {
	return &command{level: levelReaders, short: "abcFHiIlLnNopPqsSUvVwx0.u", value: "ABCeEgjmMrtTd", operands: unlimited, loose: true, script: "e", check: checkRg, follows: "L follow", runsAny: true,
		long: "after-context: before-context: context: regexp: fixed-strings ignore-case case-sensitive smart-case line-number no-line-number column no-column with-filename no-filename files files-with-matches files-without-match count count-matches include-zero invert-match word-regexp line-regexp only-matching multiline multiline-dotall pcre2 quiet glob: iglob: type: type-not: type-list max-count: max-columns: max-columns-preview max-depth: max-filesize: threads: replace: trim no-heading heading pretty color: colors: sort: sortr: stats json vimgrep null no-messages no-config text hidden no-hidden no-ignore no-ignore-vcs no-ignore-parent follow one-file-system passthru passthrough engine: encoding: context-separator: field-match-separator: glob-case-insensitive crlf byte-offset no-unicode unrestricted"}
}

// Flags of git's diff machinery that only shape output. Left out: --output writes,
// --ext-diff and --textconv run programs, --no-index reads outside the repository, -O
// reads a file.
const (
	diffLong = "patch no-patch raw patch-with-raw patch-with-stat stat= numstat shortstat dirstat= summary name-only name-status unified: indent-heuristic no-indent-heuristic minimal patience histogram diff-algorithm: anchored: compact-summary cumulative " +
		"color= no-color color-moved= no-color-moved color-moved-ws: word-diff= word-diff-regex: color-words= no-renames rename-empty no-rename-empty check full-index binary abbrev= break-rewrites= find-renames= find-copies= find-copies-harder irreversible-delete diff-filter: " +
		"pickaxe-all pickaxe-regex relative= no-relative text ignore-cr-at-eol ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines: inter-hunk-context: function-context exit-code quiet no-ext-diff no-textconv ignore-submodules= " +
		"src-prefix: dst-prefix: no-prefix default-prefix line-prefix: output-indicator-new: output-indicator-old: output-indicator-context: ita-invisible-in-index merge-base cached staged base ours theirs combined-all-paths cc"
	diffShort = "puswbaRWzcm"
	diffTail  = "MCBXD"
	logLong   = diffLong + " follow no-follow decorate= no-decorate decorate-refs: decorate-refs-exclude: source mailmap no-mailmap use-mailmap full-diff log-size max-count: skip: since: after: until: before: author: committer: grep: all-match invert-grep regexp-ignore-case basic-regexp extended-regexp fixed-strings perl-regexp " +
		"merges no-merges min-parents: max-parents: first-parent all branches= tags= remotes= glob: exclude: ignore-missing cherry-mark cherry-pick left-only right-only cherry walk-reflogs merge boundary simplify-by-decoration full-history dense sparse simplify-merges ancestry-path= date-order author-date-order topo-order reverse " +
		"no-walk= do-walk pretty: format: abbrev-commit no-abbrev-commit oneline encoding: expand-tabs= no-expand-tabs notes= no-notes relative-date date: parents children left-right graph no-graph show-linear-break= diff-merges: no-diff-merges dd not remove-empty"
	logShort = diffShort + "gEFPirt"
	logValue = "UlSGIn"
)

// gitLog is an entry for git log and git show, which take the same flags.
func gitLog() *command {
	return &command{level: levelDesign, short: logShort, value: logValue + "L", tail: diffTail, digits: true, operands: unlimited, long: logLong, check: gitFormat, differ: true}
}

func gitReflog() *command {
	c := gitLog()
	c.level, c.differ = levelReaders, false
	return c
}

func ghRead() *command {
	return &command{level: levelApproved, operands: 1, text: true, short: "c", value: "LqR", long: "limit: state: json: jq: repo: comments search: label: author: assignee: branch: status: workflow: log log-failed job: patch name-only required", check: checkGh, runner: true}
}
