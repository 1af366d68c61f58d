//! Skills.

use mcpact::server::{Server, Skill};

const INVOICE: &str = "# Invoice {number}\n\nTotal: {total}\n";

const GUIDE: &str =
    "Ask for the customer's number first. Then fill in a template from `templates/`.";

pub(crate) fn register(server: Server) -> Server {
    server
        .skill(
            Skill::new(
                "skill://acme/billing/invoices",
                "Write invoices and reminders from templates",
                GUIDE,
            )
            .field("license", "Apache-2.0")
            .file("templates/invoice.md", "text/markdown", INVOICE)
            .file(
                "templates/regional/eu.md",
                "text/markdown",
                "VAT: {rate} – reverse charge\n",
            )
            .file(
                "scripts/number.py",
                "text/x-python",
                "import uuid\n\nprint(uuid.uuid4())\n",
            ),
        )
        .skill(Skill::new(
            "skill://git-workflow",
            "Follow the conventions of the team for branches and commits",
            "One change per commit. The first line is an imperative.",
        ))
}
