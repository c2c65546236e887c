"""Topics that others write: changes in the order of their times, marks of snapshots."""
