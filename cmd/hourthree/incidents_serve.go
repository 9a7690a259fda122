package main

import "github.com/spf13/cobra"

func incidentsServe(o *shelf) *cobra.Command {
	return &cobra.Command{Use: "serve"}
}
