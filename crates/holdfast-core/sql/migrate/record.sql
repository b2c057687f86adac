-- After a migration ran, in the same transaction.
insert into /*schema*/migration (version, name) values (/*version*/0, '/*name*/');
