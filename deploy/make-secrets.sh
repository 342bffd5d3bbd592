#!/bin/sh
# Makes the secrets of a deployment, each a file: `sh deploy/make-secrets.sh [FOLDER]`, by default deploy/secrets.
# A file that is there stays as it is. Keep the folder: whoever has it has everything.
set -eu
folder=${1:-$(dirname "$0")/secrets}
mkdir -p -m 700 "$folder"
cd "$folder"
umask 022 # containers read some of them as another user; the folder lets nobody else in

random() { openssl rand -hex 24; }
new() { [ ! -e "$1" ]; }

new postgres.password && random | tr -d '\n' >postgres.password
if new redis.conf; then
  echo "requirepass $(random)" >redis.conf
fi
if new common.env; then
  {
    echo "TINY_HARNESS_STORE_URL=postgresql://harness:$(cat postgres.password)@postgres:5432/harness"
    echo "TINY_HARNESS_REDIS_URL=redis://:$(cut -d' ' -f2 redis.conf)@redis:6379/0"
    echo "TINY_HARNESS_SEAL_KEYS=$(openssl rand -base64 32)"
    echo "TINY_HARNESS_PUSH_KEY=$(openssl rand -base64 32)"
  } >common.env
fi
new hooks.env && echo "TINY_HARNESS_HOOK_SECRET_HOOKS=$(random)" >hooks.env
if new models.env; then
  {
    echo "OPENAI_API_KEY=${OPENAI_API_KEY:-}"
    echo "ANTHROPIC_API_KEY=${ANTHROPIC_API_KEY:-}"
  } >models.env
fi
curve="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
if new ca.pem; then
  # shellcheck disable=SC2086 # these are words
  openssl req -x509 $curve -days 3650 -subj "/CN=tiny-harness hooks" -addext keyUsage=critical,keyCertSign \
    -keyout ca.key -out ca.pem 2>/dev/null
  chmod 600 ca.key
fi
# To renew it, delete it.
if new hooks.pem; then
  # shellcheck disable=SC2086
  openssl req $curve -subj /CN=hooks -keyout hooks.key -out hooks.csr 2>/dev/null
  {
    echo "subjectAltName=DNS:hooks,DNS:localhost,IP:127.0.0.1"
    echo "extendedKeyUsage=serverAuth"
    echo "authorityKeyIdentifier=keyid"
  } >hooks.ext
  openssl x509 -req -in hooks.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 825 -extfile hooks.ext \
    -out hooks.pem 2>/dev/null
  chmod 644 hooks.key
  rm -f hooks.csr hooks.ext ca.srl
fi
echo "secrets are in $(pwd)"
