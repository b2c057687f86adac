-- Listens on a channel of this check.
listen holdfast_doctor
