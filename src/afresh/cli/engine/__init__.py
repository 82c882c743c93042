"""Commands of the help panel "Keep copies fresh": they work on a project folder and its store."""
