package contain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// supportFile is the name of the file in which KnownSupport stores the result of Support.
const supportFile = "containment.json"

// keptSupport is the content of supportFile.
type keptSupport struct {
	Machine string `json:"machine"` // see machineState
	Level   Level  `json:"level"`
	Why     string `json:"why,omitempty"`
}

// KnownSupport returns the stored result of Support. It calls Support if there is no result, or if the
// boot, the user, the program, or a namespace or limit has changed. It stores the new result in dir, and
// creates dir if necessary. Other changes can make the stored result wrong, so Run does not use it.
func KnownSupport(dir string) (Level, error) {
	state := machineState()
	file := filepath.Join(dir, supportFile)
	var kept keptSupport
	if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, &kept) == nil && kept.Machine == state {
		if kept.Why == "" {
			return kept.Level, nil
		}
		return kept.Level, errors.New(kept.Why)
	}
	level, why := Support()
	kept = keptSupport{Machine: state, Level: level}
	if why != nil {
		kept.Why = why.Error()
	}
	if data, err := json.Marshal(kept); err == nil && os.MkdirAll(dir, 0o700) == nil {
		temporary := file + "." + strconv.Itoa(os.Getpid())
		if os.WriteFile(temporary, data, 0o600) != nil || os.Rename(temporary, file) != nil {
			_ = os.Remove(temporary) // remove the temporary file; the next call of KnownSupport then calls Support again
		}
	}
	return level, why
}

// machineState returns a digest of the settings and limits on which the level of containment depends.
func machineState() string {
	state := []string{strconv.Itoa(os.Geteuid())}
	for _, file := range []string{
		"/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
		"/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_mnt_namespaces", "/proc/sys/user/max_pid_namespaces", "/proc/sys/user/max_net_namespaces",
		"/proc/self/attr/current",
	} {
		data, _ := os.ReadFile(file)
		state = append(state, string(data))
	}
	for _, link := range []string{"/proc/self/ns/user", "/proc/self/ns/mnt", "/proc/self/exe"} {
		to, _ := os.Readlink(link)
		state = append(state, to)
	}
	if info, err := os.Stat("/proc/self/exe"); err == nil {
		state = append(state, info.ModTime().String())
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Seccomp") || strings.HasPrefix(line, "NoNewPrivs") || strings.HasPrefix(line, "CapBnd") {
			state = append(state, line)
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(state, "\x00")))
	return hex.EncodeToString(sum[:])
}
