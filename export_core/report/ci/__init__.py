"""What other systems read: Markdown, JUnit, SARIF, annotations, calendars."""
