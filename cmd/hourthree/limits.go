package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/app"
	"github.com/hourthree/hourthree/internal/config"
)

func limitsCommand() *cobra.Command {
	var path string
	var asJSON, require bool
	c := &cobra.Command{
		Use: "limits", Short: "List what every caller, model and target is held to", Args: cobra.NoArgs,
		Long: `List what every workload, key, model, target and passed-through path is held
to, and name those without a limit. Keys are shown by the first 8 hex digits of
their SHA-256. A running router tells the same with what is used of it, at
/api/v1/limits of its operator's listener.

Exit 0; 1: with --require, a workload has no limit, neither itself nor for each
of its keys; 2: the configuration would be refused.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := configured(path)
			if err != nil {
				return err
			}
			l := app.Limits(c)
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetEscapeHTML(false)
				enc.SetIndent("", "  ")
				err = enc.Encode(l)
			} else {
				err = printLimits(cmd.OutOrStdout(), l)
			}
			if err == nil && require && len(l.Without) > 0 {
				return silent(exitFindings)
			}
			return err
		},
	}
	c.Flags().StringVarP(&path, "config", "c", "", "configuration file")
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.Flags().BoolVar(&require, "require", false, "exit 1 when a workload has no limit")
	return c
}

// configured is the configuration that serve would take.
func configured(path string) (*config.Config, error) {
	if path != "" {
		return config.Load(path, os.LookupEnv)
	}
	c, _ := config.FromEnv(os.LookupEnv)
	return c, nil
}

// The columns of the table, 80 in all.
const (
	nameColumn = 32
	limitsHead = "%-*s%11s%14s%9s%13s\n"
)

func printLimits(out io.Writer, l app.LimitReport) error {
	var b strings.Builder
	fmt.Fprintf(&b, limitsHead, nameColumn, "", "rpm", "tpm", "at once", "USD a day")
	for _, x := range l.Bounds {
		name := label(x)
		if len([]rune(name)) >= nameColumn {
			b.WriteString(clip(name, 79) + "\n")
			name = ""
		}
		if x.NoLimit {
			fmt.Fprintf(&b, "%-*s%11s\n", nameColumn, name, "no limit")
			continue
		}
		fmt.Fprintf(&b, limitsHead, nameColumn, name, number(x.RPM), number(x.TPM), number(int64(x.Concurrency)), dollars(x.USDPerDay))
	}
	fmt.Fprintf(&b, "\nFor each workload besides:\n")
	for _, r := range l.Rules {
		fmt.Fprintf(&b, "%s\n", clip(label(app.LimitBound{Level: "workload", Name: r.Workload}), 79))
		fmt.Fprintf(&b, "  priority %s; repeats of its own: %.0f %% of its requests and %g a second;\n  memory: %s\n", r.Priority, 100*r.RepeatRatio, r.RepeatPerSecond, memoryOf(r.MemoryShare))
	}
	if len(l.Without) > 0 {
		b.WriteString("\nWorkloads without a limit:\n")
		for _, name := range l.Without {
			b.WriteString("  " + clip(name, 77) + "\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func memoryOf(share float64) string {
	if share >= 1 {
		return "all of it, as the only workload"
	}
	return fmt.Sprintf("%.0f %% of the limit once half of it is taken", 100*share)
}

// label names an owner of limits, indented below the workload that it belongs to.
func label(x app.LimitBound) string {
	switch x.Level {
	case "key", "workload_model":
		return "  " + strings.TrimPrefix(x.Level, "workload_") + " " + x.Name
	case "passthrough":
		return "path " + x.Name + " (" + x.Provider + ")"
	}
	return x.Level + " " + x.Name
}

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// number shows a limit, and nothing for none.
func number(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

func dollars(f float64) string {
	if f == 0 {
		return "-"
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
