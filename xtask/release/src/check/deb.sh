# Installs, runs, upgrades, removes and purges $PACKAGE in a root that is an overlay of this system, below $WORK.
set -eu
mount -t overlay overlay -o "lowerdir=/,upperdir=$WORK/upper,workdir=$WORK/inner" "$WORK/root"
mount -t proc proc "$WORK/root/proc"
mount --rbind /dev "$WORK/root/dev"
cp "$PACKAGE" "$WORK/root/tmp/tambour.deb"
exec chroot "$WORK/root" sh -eux -c '
export DEBIAN_FRONTEND=noninteractive
dpkg --install /tmp/tambour.deb
dpkg --verify tambour
tambour --version
getent passwd tambour
test "$(stat -c %a:%U /etc/tambour/secrets.env)" = 600:root
test -f /usr/share/man/man1/tambour-serve.1.gz

# The service as its user, with the configuration of the package.
install -d -m 700 -o tambour -g tambour /var/lib/tambour
runuser -u tambour -- tambour serve --config /etc/tambour/tambour.toml --data /var/lib/tambour --listen 127.0.0.1:0 --upstream demo > /tmp/out &
server=$!
for try in $(seq 300); do grep -q listening /tmp/out && break; sleep 0.1; done
address=$(sed -n "s|^listening on http://||p" /tmp/out)
test "$(tambour health --ready "$address")" = ok
kill $server
wait $server || true
test -f /var/lib/tambour/tambour.sqlite

# An upgrade keeps what the administrator has changed; a removal keeps data and configuration.
echo "# changed" >> /etc/tambour/tambour.toml
dpkg --install /tmp/tambour.deb
grep -q "^# changed" /etc/tambour/tambour.toml
dpkg --remove tambour
test ! -e /usr/bin/tambour
test -f /etc/tambour/tambour.toml
test -f /var/lib/tambour/tambour.sqlite
dpkg --purge tambour
test ! -e /etc/tambour
test ! -e /var/lib/tambour
'
