#!/bin/bash
# Adds berth's users to the root folder of an image: add-users.sh ROOT. Programs look up the name and the home of their user.
set -euo pipefail

root=$1

# The images and the pods run with these ids.
add_user() {
  local name=$1 id=$2 home=$3
  grep -q "^$name:" "$root/etc/passwd" || echo "$name:x:$id:$id::$home:/usr/sbin/nologin" >>"$root/etc/passwd"
  grep -q "^$name:" "$root/etc/group" || echo "$name:x:$id:" >>"$root/etc/group"
}

add_user berth 1000 /var/lib/berth
add_user berth-egress 1001 /nonexistent
