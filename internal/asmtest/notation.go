package asmtest

import (
	"fmt"
	"regexp"
	"strings"
)

// notation is a way to write assembly.
type notation struct {
	vector      *regexp.Regexp // an operand that is a vector register
	wide        *regexp.Regexp // one of more than 128 bits
	avx512      *regexp.Regexp // one that AVX2 does not have
	vex         string         // how VEX instructions begin
	ret         string
	zeroUpper   string
	instruction func(line string) (mnemonic, operands string, evex bool)
}

var goNotation = notation{
	vector:    regexp.MustCompile(`\b[XYZ]\d+\b`),
	wide:      regexp.MustCompile(`\b[YZ]\d+\b`),
	avx512:    regexp.MustCompile(`\b(Z\d+|K[0-7]|[XY](1[6-9]|[23]\d))\b`),
	vex:       "V",
	ret:       "RET",
	zeroUpper: "VZEROUPPER",
	instruction: func(line string) (string, string, bool) {
		line, _, _ = strings.Cut(line, "//")
		if strings.HasSuffix(strings.TrimSpace(line), ":") {
			return "", "", false
		}
		mnemonic, operands, _ := strings.Cut(strings.TrimSpace(line), " ")
		return strings.TrimSuffix(mnemonic, ";"), operands, false
	},
}

// gnuNotation is that of objdump with the bytes of instructions, of which the
// first tells EVEX, the encoding of AVX-512, from VEX.
var gnuNotation = notation{
	vector:    regexp.MustCompile(`%[xyz]mm\d+`),
	wide:      regexp.MustCompile(`%[yz]mm\d+`),
	avx512:    regexp.MustCompile(`%(zmm\d+|k[0-7]|[xy]mm(1[6-9]|[23]\d))`),
	vex:       "v",
	ret:       "ret",
	zeroUpper: "vzeroupper",
	instruction: func(line string) (string, string, bool) {
		parts := strings.SplitN(line, "\t", 3)
		if len(parts) < 3 {
			return "", "", false
		}
		mnemonic, operands, _ := strings.Cut(strings.TrimSpace(parts[2]), " ")
		return mnemonic, operands, strings.HasPrefix(parts[1], "62 ")
	},
}

// faults names what is wrong with a function.
func (n notation) faults(name string, lines []string) (found []string) {
	wide, clean := false, false // clean: since VZEROUPPER there were only scalar instructions
	for i, line := range lines {
		mnemonic, operands, evex := n.instruction(line)
		if mnemonic == "" {
			continue
		}
		where := fmt.Sprintf("%s, line %d: %s: ", name, i+1, strings.TrimSpace(line))
		if evex || n.avx512.MatchString(operands) {
			found = append(found, where+"not of AVX2")
		} else if n.vector.MatchString(operands) && !strings.HasPrefix(mnemonic, n.vex) {
			found = append(found, where+"not VEX")
		}
		wide = wide || n.wide.MatchString(operands)
		switch {
		case mnemonic == n.ret:
			if wide && !clean {
				found = append(found, where+"the upper halves of registers are still in use")
			}
			clean = false
		case mnemonic == n.zeroUpper:
			clean = true
		case n.vector.MatchString(operands):
			clean = false
		}
	}
	return found
}
