package cli

// Commands are the commands that call a running service. The command line of quotasvc contains them.
type Commands struct {
	Tenant    tenantCmd    `cmd:"" group:"Use a running service" help:"List, show and create tenants."`
	Balance   balanceCmd   `cmd:"" group:"Use a running service" help:"Show the balances of a tenant."`
	Grant     grantCmd     `cmd:"" group:"Use a running service" help:"Grant units to a tenant."`
	Extend    extendCmd    `cmd:"" group:"Use a running service" help:"Give a grant a later end."`
	Debit     debitCmd     `cmd:"" group:"Use a running service" help:"Debit units of a tenant."`
	Explain   explainCmd   `cmd:"" group:"Use a running service" help:"Explain whether a tenant may use units now, and why not. Nothing is charged."`
	Usage     usageCmd     `cmd:"" group:"Use a running service" help:"Show what a tenant has used of a meter, over time."`
	Statement statementCmd `cmd:"" group:"Use a running service" help:"Show the statement of a period: what was granted, used and left."`
	Denials   denialsCmd   `cmd:"" group:"Use a running service" help:"Show why requests of a tenant were refused."`
	Shadow    shadowCmd    `cmd:"" group:"Use a running service" help:"Show what a limit in shadow mode would have denied."`
	Events    eventsCmd    `cmd:"" group:"Use a running service" help:"List events: thresholds, grants, plan changes."`
	Listen    listenCmd    `cmd:"" group:"Use a running service" help:"Forward events to an address of this machine, signed as webhooks are. For development."`
	Export    exportCmd    `cmd:"" group:"Use a running service" help:"Print the catalogue as catalog.yaml, without tenants."`
	Schema    schemaCmd    `cmd:"" group:"Tools" help:"Print the JSON Schema of a file, for editors."`
	Complete  completeCmd  `cmd:"" name:"completion" group:"Tools" help:"Print the completion script of a shell."`
	Man       manCmd       `cmd:"" group:"Tools" help:"Print the manual page."`
}
