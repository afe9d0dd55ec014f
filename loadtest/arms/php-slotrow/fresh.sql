-- SPDX-License-Identifier: Apache-2.0
INSERT IGNORE INTO slotrow_slot
SELECT '@SLOT@', '@SLOT@', COUNT(*), NOW() FROM slotrow_hall;
INSERT IGNORE INTO slotrow_place (slot_key, place_no, guid)
SELECT '@SLOT@', place_no, guid FROM slotrow_hall;
