package commands

import (
	"slices"
	"strings"
)

// Reaches reports whether a command with these harms exchanges data with another machine.
func Reaches(harms []Harm) bool {
	return slices.ContainsFunc(harms, func(h Harm) bool {
		return h.OnlyTransfers() || h == runsRemotely || h == changesSystems || h == deletesElsewhere || h == publishes
	})
}

// OnlyTransfers reports whether the harm is only that data goes to or comes from another machine.
func (h Harm) OnlyTransfers() bool { return h == usesNetwork || h == copiesRemotely }

// PrintsSecrets reports whether a program prints secrets, such as env.
func PrintsSecrets(name string) bool {
	return name != "set" && name != "op" && name != "pass" && Entry(ProgramName(name)).Harm == showsSecrets
}

// localFiles are the flags, by program, whose value is a file that the program uses and does not send.
var localFiles = map[string][]string{
	"ssh": {"i", "F", "E", "S"}, "scp": {"i", "F", "S"}, "sftp": {"i", "F"}, "rsync": {"e", "rsh", "exclude", "exclude-from", "include", "filter", "password-file", "log-file"},
	"kubectl": {"kubeconfig", "client-key", "client-certificate", "certificate-authority"}, "helm": {"kubeconfig"},
	"aws": {"ca-bundle"}, "http": {"o", "output", "cert", "cert-key", "verify"},
}

// bodyFlags are the flags of curl and wget whose value is a file that they send.
var bodyFlags = []string{"T", "upload-file", "b", "cookie", "post-file", "body-file"}

// SentWords returns the words of a command that may name files which the command sends. The result only
// informs people, because the command may send other files too.
func SentWords(argv []string) (all []string) {
	name, args := ProgramName(argv[0]), argv[1:]
	switch name {
	case "ssh", "mosh", "nc", "ncat", "telnet", "ping", "dig", "host", "nslookup", "git", "psql", "mysql", "sqlite3", "docker", "npm":
		return nil // of these programs, only the input counts as sent
	case "curl", "wget":
		all = flagValues(args, bodyFlags...)
		for _, a := range args {
			if !strings.Contains(a, "://") && (strings.Contains(a, "@") || strings.Contains(a, "=<")) {
				all = append(all, a)
			}
		}
		return all
	case "http":
		return slices.DeleteFunc(operands(args, localFiles[name]...), func(a string) bool { return !strings.Contains(a, "@") })
	case "scp", "rsync":
		files := operands(args, append(localFiles[name], valueFlags[name]...)...)
		if len(files) < 2 || plainLocal(files[len(files)-1]) {
			return nil
		}
		return files[:len(files)-1]
	case "aws", "gsutil", "gcloud", "rclone":
		files := operands(args, append(localFiles[name], "profile", "region", "endpoint-url")...)
		if copies := slices.IndexFunc(files, func(a string) bool { return slices.Contains([]string{"cp", "mv", "sync", "copy", "rsync"}, a) }); copies >= 0 && len(files) > copies+2 {
			return files[copies+1 : len(files)-1]
		}
		return append(files, args...)
	case "kubectl":
		if at := slices.Index(args, "--"); at >= 0 {
			args = args[:at] // the words after -- name files on the other machine
		}
	}
	for i, a := range args {
		if i > 0 && slices.Contains(localFiles[name], strings.TrimLeft(args[i-1], "-")) && strings.HasPrefix(args[i-1], "-") {
			continue
		}
		if flag, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "="); strings.HasPrefix(a, "-") && slices.Contains(localFiles[name], flag) {
			continue
		}
		all = append(all, a)
	}
	return all
}

// plainLocal reports whether the last word of a copy command is certainly a file of this machine.
func plainLocal(w string) bool { return w != "" && !strings.ContainsAny(w, ":$`") }

// FileIn returns the file in a word such as @.env, name=@.env, --data=@.env or file://.env. Any other word
// it returns unchanged.
func FileIn(w string) string {
	if strings.HasPrefix(w, "-") {
		if _, value, with := strings.Cut(w, "="); with {
			w = value
		}
	}
	if at := strings.IndexAny(w, "@<"); at >= 0 && at+1 < len(w) && !strings.Contains(w, "://") && !strings.Contains(w[at+1:], ":") {
		w = w[at+1:]
	}
	for _, scheme := range []string{"fileb://", "file://"} {
		w = strings.TrimPrefix(w, scheme)
	}
	if _, value, with := strings.Cut(w, "="); with && value != "" {
		w = value
	}
	if end := strings.IndexAny(w, ";,"); end > 0 {
		w = w[:end]
	}
	return w
}

// Destinations returns the names of the places to which a command may send data.
func Destinations(argv []string) []string {
	name := ProgramName(argv[0])
	if name == "scp" || name == "rsync" {
		files := operands(argv[1:], append(localFiles[name], valueFlags[name]...)...)
		if len(files) == 0 {
			return nil
		}
		last := files[len(files)-1:]
		return append(remoteFiles(last), hosts(name, last)...)
	}
	places := placesOf(name, argv)
	for i, place := range places {
		if _, named, with := strings.Cut(place, " "); with && place != Unknown && !InUse(place) {
			places[i] = named // "context prod" is said as "prod"
		}
	}
	return places
}

// InUse reports whether the name of a place is a text such as "the context in use", by which nod names a
// place that a program's settings choose.
func InUse(place string) bool {
	for _, s := range systems {
		if s.inUse == place {
			return true
		}
	}
	return slices.Contains([]string{"the host in use", "the account in use", DefaultRemote}, place)
}
