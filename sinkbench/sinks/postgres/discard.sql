-- Discards what is written to a table. COPY calls triggers, too. Indexes and constraints are checked after them, and so
-- never.
CREATE FUNCTION {name}.discard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END $$;
CREATE TRIGGER discard BEFORE INSERT ON public.{name} FOR EACH ROW EXECUTE FUNCTION {name}.discard()
