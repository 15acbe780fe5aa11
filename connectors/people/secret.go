package people

import (
	"fmt"
	"os"
	"strings"
)

// ReadSecret reads a secret from the file or the environment variable that a setting names. If file is
// empty, it reads the environment variable with the name env. The parameter setting is the path of the
// setting without its ending _file or _env, and the parameter what describes the secret. An error names
// the setting and never contains the secret.
func ReadSecret(setting, env, file, what string) (string, error) {
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("%s_file: %w", setting, err)
		}
		return strings.TrimSpace(string(data)), nil
	}
	secret := os.Getenv(env)
	if secret == "" {
		name := setting[strings.LastIndexByte(setting, '.')+1:]
		return "", fmt.Errorf("%s_env: the environment variable %s is not set: put %s there, or name a file in %s_file", setting, env, what, name)
	}
	return secret, nil
}
