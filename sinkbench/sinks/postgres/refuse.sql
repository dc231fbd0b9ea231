-- Makes every write to a table fail.
CREATE FUNCTION {name}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = {said};
END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON public.{name}
FOR EACH STATEMENT EXECUTE FUNCTION {name}.refuse()
