#!/bin/sh
# A golden of each artifact, from the inputs and outputs that were saved with it.
set -eu
for name in tides rainfall; do
  jaxexport goldens add --case "$name" --artifact "artifacts/$name.jaxexport" \
    --inputs "artifacts/$name.inputs.npz" --outputs "artifacts/$name.outputs.npz" "$@"
done
