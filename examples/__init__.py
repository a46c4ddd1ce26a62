"""Things to try parfocal on."""
