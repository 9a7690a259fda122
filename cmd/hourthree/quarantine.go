package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// defaultAdmin is where an operator's listener is unless it was moved.
const defaultAdmin = "http://127.0.0.1:8081"

func quarantineCommand() *cobra.Command {
	var admin, why string
	var share float64
	var release bool
	c := &cobra.Command{
		Use:   "quarantine WORKLOAD",
		Short: "Move a workload to its own lane in a running router, or back",
		Long: "Move a workload of a running router to the quarantine lane: a fixed share of\n" +
			"concurrency and memory, no extra attempts, no repeats. It holds from the next\n" +
			"request on, without a restart, until --release.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one workload: hourthree quarantine WORKLOAD; hourthree limits lists them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			order := map[string]any{"who": operator(), "why": why}
			method, said := http.MethodPut, "in quarantine"
			if release {
				method, said = http.MethodDelete, "released"
			}
			if c.Flags().Changed("share") {
				order["share"] = share
			}
			if err := tell(method, admin, "/api/v1/workloads/"+url.PathEscape(args[0])+"/quarantine", order); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", args[0], said)
			return nil
		},
	}
	c.Flags().StringVar(&admin, "admin", defaultAdmin, "address of the router's operator listener")
	c.Flags().StringVar(&why, "why", "", "reason, for the list of changes")
	c.Flags().Float64Var(&share, "share", 0.05, "share of concurrency and memory, 0 to 1; 0 lets nothing in")
	c.Flags().BoolVar(&release, "release", false, "move it back")
	return c
}

// operator is who runs the command.
func operator() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// maxAnswer bounds what is read of the router's answer.
const maxAnswer = 1 << 20

// tell sends an order to a running router.
func tell(method, admin, path string, order any) error {
	if !strings.Contains(admin, "://") {
		admin = "http://" + admin
	}
	body, err := json.Marshal(order)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(method, strings.TrimSuffix(admin, "/")+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("--admin %s: %w", admin, err)
	}
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return exit{exitRun, fmt.Errorf("no router answers at %s: %w; --admin names another address", admin, err)}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil || resp.StatusCode < 300 {
		return err
	}
	var problem struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(answer, &problem) == nil && problem.Error != "" {
		return exit{exitRun, errors.New(problem.Error)}
	}
	return exit{exitRun, fmt.Errorf("%s answers %s: is it the operator's listener of a router?", admin, resp.Status)}
}
