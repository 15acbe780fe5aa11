package contain

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/internal/lazyregexp"
)

// secretVariable matches names of environment variables that may hold secrets.
var secretVariable = lazyregexp.New(`(?i)(TOKEN|SECRET|PASSW|PASSPHRASE|_PASS$|^PASS$|_PWD$|CREDENTIAL|_CREDS?$|API_?KEY|_KEYS?$|^KEY$|ACCESS_?KEY|PRIVATE|_AUTH$|^AUTH_|_AUTH_|COOKIE|_DSN$|_PAT$|_CERT_DATA|SIGNATURE|KUBECONFIG|^AWS_|^AZURE_|^GOOGLE_|^GCLOUD_|^OCI_|^DATABASE_URL|WEBHOOK|^NOD_|^VAULT_|^ANTHROPIC_|^OPENAI_|^GEMINI_|^SENTRY_|^ASKPASS$|_ASKPASS$|^BASH_FUNC_)`)

// droppedVariables are the environment variables that the command does not get. They name sockets and
// programs that do not exist in the container, directories for temporary files, or proxies.
var droppedVariables = []string{
	"SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "XDG_RUNTIME_DIR",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DOCKER_HOST", "DOCKER_CONFIG", "CONTAINER_HOST", "PULSE_SERVER", "TMUX", "STY", "VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE",
	"TMPDIR", "TEMP", "TMP", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy",
}

// loginInValue matches a URL with a password.
var loginInValue = lazyregexp.New(`://[^/@\s]*:[^/@\s]+@`)

// cleanEnvironment returns env without secrets and droppedVariables, followed by the variables in more.
func cleanEnvironment(env, more []string) []string {
	var out []string
	for _, v := range env {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" || secretVariable.MatchString(name) || slices.Contains(droppedVariables, name) || loginInValue.MatchString(value) {
			continue
		}
		if !slices.ContainsFunc(more, func(m string) bool { return strings.HasPrefix(m, name+"=") }) {
			out = append(out, v)
		}
	}
	return append(out, more...)
}

// variable returns the value of a variable in env. If the variable is set twice, the last value
// counts.
func variable(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}
