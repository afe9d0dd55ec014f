<?php
// SPDX-License-Identifier: Apache-2.0
// One click of a booking site: change something under the slot's row, then
// build the hall's page. What was done stands in the header Load-Answer.
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);

function line(): mysqli
{
    $db = mysqli_init();
    $db->real_connect('p:localhost', $_SERVER['SLOTROW_USER'],
        $_SERVER['SLOTROW_PASSWORD'], $_SERVER['SLOTROW_DATABASE'], 0,
        $_SERVER['SLOTROW_SOCKET']);
    $db->set_charset('utf8mb4');
    return $db;
}

function ask(mysqli $db, string $sql, string $types = '', ...$values)
{
    $statement = $db->prepare($sql);
    if ($types !== '') {
        $statement->bind_param($types, ...$values);
    }
    $statement->execute();
    $result = $statement->get_result();
    return $result === false ? [] : $result->fetch_all(MYSQLI_ASSOC);
}

function refuse(mysqli $db, string $slot, string $reason): void
{
    $db->rollback();
    page($db, $slot, 409, ['reason' => $reason]);
    exit;
}

function order_of(mysqli $db, string $slot): ?array
{
    $token = $_COOKIE['slotrow'] ?? '';
    $found = $token === '' ? [] : ask($db,
        'SELECT * FROM slotrow_order WHERE token = ? AND slot_key = ?', 'ss',
        $token, $slot);
    return $found[0] ?? null;
}

function lines_of(mysqli $db, int $order): array
{
    return ask($db, 'SELECT l.line_id AS line, p.guid AS place, l.price ' .
        'FROM slotrow_line l JOIN slotrow_place p ON p.slot_key = l.slot_key ' .
        'AND p.place_no = l.place_no WHERE l.order_id = ? ORDER BY l.line_id',
        'i', $order);
}

function take(mysqli $db, string $slot, int $order, array $guids): void
{
    foreach ($guids as $guid) {
        $place = ask($db, 'SELECT place_no, state FROM slotrow_place ' .
            'WHERE slot_key = ? AND guid = ?', 'ss', $slot, $guid)[0] ?? null;
        if ($place === null || $place['state'] != 0) {
            refuse($db, $slot, 'taken');
        }
        ask($db, 'UPDATE slotrow_place SET state = 1, order_id = ? ' .
            'WHERE slot_key = ? AND place_no = ?', 'isi', $order, $slot,
            $place['place_no']);
        ask($db, 'INSERT INTO slotrow_line (order_id, slot_key, place_no, ' .
            'price) VALUES (?, ?, ?, 4500)', 'isi', $order, $slot,
            $place['place_no']);
    }
    ask($db, 'UPDATE slotrow_order SET total = total + ?, ' .
        'until = NOW() + INTERVAL 10 MINUTE WHERE order_id = ?', 'ii',
        4500 * count($guids), $order);
    ask($db, 'UPDATE slotrow_slot SET free = free - ?, changed = NOW() ' .
        'WHERE slot_key = ?', 'is', count($guids), $slot);
}

function give(mysqli $db, string $slot, int $order, ?int $line): void
{
    foreach (ask($db, 'SELECT * FROM slotrow_line WHERE order_id = ?', 'i',
        $order) as $row) {
        if ($line !== null && $row['line_id'] != $line) {
            continue;
        }
        ask($db, 'UPDATE slotrow_place SET state = 0, order_id = 0 ' .
            'WHERE slot_key = ? AND place_no = ?', 'si', $slot,
            $row['place_no']);
        ask($db, 'DELETE FROM slotrow_line WHERE line_id = ?', 'i',
            $row['line_id']);
        ask($db, 'UPDATE slotrow_slot SET free = free + 1, changed = NOW() ' .
            'WHERE slot_key = ?', 's', $slot);
    }
}

function begin_order(mysqli $db, string $slot): array
{
    $token = bin2hex(random_bytes(16));
    ask($db, 'INSERT INTO slotrow_order (token, slot_key, state, until, ' .
        "total) VALUES (?, ?, 'held', NOW() + INTERVAL 10 MINUTE, 0)", 'ss',
        $token, $slot);
    setcookie('slotrow', $token, ['path' => '/', 'httponly' => true]);
    return ['order_id' => $db->insert_id, 'token' => $token,
        'state' => 'held'];
}

function state_set(mysqli $db, string $slot, int $order, string $state): void
{
    ask($db, 'UPDATE slotrow_order SET state = ? WHERE order_id = ?', 'si',
        $state, $order);
    if ($state === 'confirmed') {
        ask($db, 'UPDATE slotrow_place SET state = 2 WHERE order_id = ?', 'i',
            $order);
    }
    ask($db, 'UPDATE slotrow_slot SET changed = NOW() WHERE slot_key = ?',
        's', $slot);
}

// The site's caches all hang on one tag: whoever changed anything writes it.
function tag(mysqli $db): void
{
    if ($_SERVER['SLOTROW_TAG'] === 'db') {
        ask($db, "UPDATE slotrow_tag SET value = value + 1 WHERE name = 'site'");
    } elseif ($_SERVER['SLOTROW_TAG'] === 'memcache') {
        $cache = new Memcached('slotrow');
        if (!$cache->getServerList()) {
            [$host, $port] = explode(':', $_SERVER['SLOTROW_MEMCACHED']);
            $cache->addServer($host, (int) $port);
        }
        $cache->add('slotrow-tag', 1);
        $cache->increment('slotrow-tag');
    }
}

function page(mysqli $db, string $slot, int $status, ?array $answer): void
{
    $states = '';
    $seats = '';
    foreach (ask($db, 'SELECT h.*, p.state FROM slotrow_hall h JOIN ' .
        'slotrow_place p ON p.place_no = h.place_no WHERE p.slot_key = ? ' .
        'ORDER BY h.place_no', 's', $slot) as $row) {
        $states .= $row['state'];
        $seats .= sprintf('<i class="s%d %s" style="left:%.1fpx;top:%.1fpx" ' .
            'title="%s">%s</i>', $row['state'],
            htmlspecialchars($row['grade']), $row['x'], $row['y'],
            htmlspecialchars("{$row['section']} {$row['row_name']} " .
            $row['seat']), htmlspecialchars($row['seat'])) . "\n";
    }
    http_response_code($status);
    header('Content-Type: text/html; charset=utf-8');
    header('Cache-Control: no-store');
    if ($answer !== null) {
        header('Load-Answer: ' . json_encode($answer));
    }
    echo "<!doctype html><title>{$slot}</title><main>\n", $seats,
        "</main><script type=\"application/json\">",
        "{\"places\":\"{$states}\"}</script>\n";
}

$db = line();
$slot = (string) ($_GET['slot'] ?? '');
$do = (string) ($_GET['do'] ?? 'look');
if ($do === 'look') {
    page($db, $slot, 200, null);
    exit;
}
$body = json_decode(file_get_contents('php://input'), true) ?? [];
$db->begin_transaction();
$known = ask($db, 'SELECT * FROM slotrow_slot WHERE slot_key = ? FOR UPDATE',
    's', $slot);
if (!$known) {
    refuse($db, $slot, 'unknown');
}
$order = order_of($db, $slot);
$status = 200;
if ($do === 'hold') {
    if ($order === null || $order['state'] !== 'held') {
        $order = begin_order($db, $slot);
    }
    take($db, $slot, $order['order_id'], $body['places']);
    $status = 201;
} elseif ($order === null) {
    refuse($db, $slot, 'unknown');
} elseif ($do === 'exchange') {
    take($db, $slot, $order['order_id'], $body['places']);
    give($db, $slot, $order['order_id'], (int) $body['give']);
} elseif ($do === 'release') {
    give($db, $slot, $order['order_id'], null);
    state_set($db, $slot, $order['order_id'], $order['state'] = 'released');
} else {
    $order['state'] = $do === 'confirm' ? 'confirmed' : 'locked';
    state_set($db, $slot, $order['order_id'], $order['state']);
}
$lines = lines_of($db, $order['order_id']);
$db->commit();
tag($db);
page($db, $slot, $status, ['number' => (string) $order['order_id'],
    'state' => $order['state'], 'lines' => $lines]);
