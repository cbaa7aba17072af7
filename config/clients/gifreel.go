// Package gifreel writes addresses of renditions.
package gifreel

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"sort"
	"strings"
)

var forbidden = regexp.MustCompile(`[^!#-;=?-\[\]_a-z~]`)
var reserved = regexp.MustCompile(`[^-.0-:=A-Z_a-z~]`)

// Address is the address of a rendition, signed if the key is not empty. Options may be nil.
func Address(server, key, format, source string, options map[string]string) string {
	encode := func(text string) string { return strings.ReplaceAll(fmt.Sprintf("% X", " "+text), " ", "%")[2:] }
	url := forbidden.ReplaceAllStringFunc(strings.Split(source, "#")[0], encode)
	var pairs []string
	for name, value := range options {
		pairs = append(pairs, name+"="+value)
	}
	sort.Strings(pairs)
	parts := []string{format}
	for i, pair := range pairs {
		parts = append(parts, reserved.ReplaceAllStringFunc(pair, encode))
		pairs[i] = strings.ReplaceAll(pair, ",", ",,")
	}
	if key != "" {
		code := hmac.New(sha256.New, []byte(key))
		fmt.Fprintf(code, "%s\n%s\n%s", format, strings.Join(pairs, ","), url)
		parts = append(parts, "sig="+base64.RawURLEncoding.EncodeToString(code.Sum(nil)))
	}
	return server + "/" + strings.Join(parts, ",") + "/" + url
}
